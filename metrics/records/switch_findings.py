"""Warnings about what switches dropped, from the totals of their ports."""

from collections.abc import Iterator, Mapping, Sequence

from metrics.presentation import count_text

__all__ = ["port_names", "switch_findings"]

_FOUND = {
    "headroom_dropped_packets": (
        "lossless packets found the headroom of their ingress full and were dropped: it is smaller "
        "than what the link holds when the pause takes effect; give more headroom"
    ),
    "wred_dropped_packets": (
        "packets that are not ECN-capable were dropped where capable ones are marked "
        "(`drops_not_ect`)"
    ),
    "storms": "times the PFC watchdog found a queue that its neighbour paused for too long",
    "storm_dropped_packets": "packets were dropped by the PFC watchdog during a storm",
    "unroutable_packets": "packets came to a switch that has no route for them, and were dropped",
    "expired_packets": (
        "packets ran out of their time to live and were dropped: the routes have a loop"
    ),
}
"""Counters of a switch port that are 0 in a sound fabric, and what they mean."""


def port_names(ports: Mapping[str, Sequence[int]], switches: Sequence[str]) -> list[str]:
    """`switch:port` of every row of the table of switch ports."""
    pairs = zip(ports.get("switch", ()), ports.get("port", ()), strict=True)
    return [f"{switches[int(switch)]}:{port}" for switch, port in pairs]


def switch_findings(ports: Mapping[str, Sequence[int]], switches: Sequence[str]) -> Iterator[str]:
    """One sentence for each of the counters that is not 0, with the port that counted most."""
    names = port_names(ports, switches)
    for counter, meaning in _FOUND.items():
        counts = [int(count) for count in ports.get(counter, ())]
        total = sum(counts)
        if total:
            place = max(range(len(counts)), key=counts.__getitem__)
            most = f"most at {names[place]}: {count_text(counts[place])}"
            yield f"{count_text(total)} {meaning} ({most})"

"""What happens to links while a job runs: down, up, flap, another rate; and when."""

from collections.abc import Iterator
from fnmatch import fnmatchcase
from typing import Annotated, Any, Literal

from pydantic import Field

from emulator.lab.base import LabPart
from emulator.lab.fabric import Fabric

__all__ = [
    "CollectiveMoment",
    "LinkEvent",
    "NodeMoment",
    "changes",
    "event_findings",
    "links_of",
    "longest_wait_ps",
]

_Time = Annotated[int, Field(ge=0, le=10**12)]
_Moment = Literal["start", "end"]

Change = dict[str, Any]
"""One entry of the engine's `changes`."""


class NodeMoment(LabPart):
    """When a node of the trace starts or ends on its rank."""

    rank: Annotated[int, Field(ge=0)]
    """Rank whose trace the node is in."""
    node: Annotated[int, Field(ge=0)]
    """Node id, as in the trace file; `rankwire trace show` lists them."""
    moment: _Moment = "start"
    """Its first operation starts, or its last one is complete."""
    iteration: Annotated[int, Field(ge=0)] = 0
    """Repetition of the trace, from 0."""


class CollectiveMoment(LabPart):
    """When one of the collectives (or send and receive pairs) of the job starts or ends."""

    kind: str = "*"
    """Kind: all_reduce, all_to_all, send_recv, ...; a glob."""
    group: str = "*"
    """Process group; a glob."""
    label: str = "*"
    """Name in the trace; a glob."""
    index: Annotated[int, Field(ge=0)] = 0
    """Which of those that match, from 0, over all iterations, in the order of
    `collectives.parquet`."""
    moment: _Moment = "start"
    """It starts on the first rank, or is complete on all."""


class LinkEvent(LabPart):
    """Something that happens to links, both directions alike; the last change of a link holds.

    What is on a link that goes down and in the queues before it is lost, counted by itself, and no
    pause of priority flow control outlives it. Senders recover by retransmission; a NIC whose link
    is down waits. Give one of `at_ns`, `at_node` and `at_collective`. A `run` of several
    agents takes the last two after a notice, `control.event_notice_ms`.
    """

    links: str
    """Links of this name; a glob. `rankwire lab show` lists names and ends."""
    change: Literal["down", "up", "flap", "rate"]
    """Goes down for good, comes up, goes down for a time and comes back, or has another rate."""
    at_ns: _Time | None = None
    """Emulated time."""
    at_node: NodeMoment | None = None
    """A moment of one rank's trace."""
    at_collective: CollectiveMoment | None = None
    """A moment of a collective."""
    after_ns: _Time = 0
    """So long after that moment."""
    down_ns: Annotated[int, Field(ge=1, le=10**12)] | None = None
    """Of `flap`: time from going down to coming up."""
    interval_ns: Annotated[int, Field(ge=2, le=10**12)] | None = None
    """Of `flap`: time from one fall to the next; left out, twice `down_ns`."""
    repeat: Annotated[int, Field(ge=1, le=10_000)] = 1
    """Of `flap`: how often."""
    rate_gbps: Annotated[float, Field(gt=0, le=3_200)] | None = None
    """Of `rate`: the line rate from then on, Gb/s. Thresholds, headrooms and the rate limits of
    congestion control stay those of the topology's rate."""


def links_of(event: LinkEvent, fabric: Fabric) -> list[int]:
    """Indices of the links that an event means."""
    names = enumerate(link.name for link in fabric.links)
    return [index for index, name in names if fnmatchcase(name, event.links)]


def changes(event: LinkEvent) -> list[Change]:
    """What happens after the event's moment, as the engine takes it."""
    return [
        {"after_ps": (event.after_ns + after_ns) * 1000, "change": change}
        for after_ns, change in _changes(event)
    ]


def _changes(event: LinkEvent) -> Iterator[tuple[int, dict[str, Any]]]:
    if event.change == "rate":
        yield 0, {"kind": "rate", "rate_bps": round((event.rate_gbps or 0) * 1e9)}
        return
    if event.change != "flap":
        yield 0, {"kind": event.change}
        return
    down_ns = event.down_ns or 0
    interval_ns = event.interval_ns or 2 * down_ns
    for turn in range(event.repeat):
        yield turn * interval_ns, {"kind": "down"}
        yield turn * interval_ns + down_ns, {"kind": "up"}


def longest_wait_ps(events: list[dict[str, Any]]) -> int:
    """The longest time in which nothing may happen but the events of a job, summed up."""
    total = 0
    for event in events:
        total += max(change["after_ps"] for change in event["changes"])
        total += event["trigger"].get("at_ps", 0)
    return total


def event_findings(event: LinkEvent, fabric: Fabric) -> Iterator[tuple[str, str, str]]:
    """Key, what is wrong with it, and the remedy."""
    given = [name for name in ("at_ns", "at_node", "at_collective") if _is_given(event, name)]
    if len(given) != 1:
        what = f"{' and '.join(given)} are given" if given else "is missing"
        yield "at_ns", what, "give one of at_ns, at_node and at_collective"
    if not links_of(event, fabric):
        names = ", ".join(link.name for link in fabric.links[:3])
        yield (
            "links",
            f"is {event.links}, which no link matches",
            f"name links, for example {names}",
        )
    needed = {"flap": "down_ns", "rate": "rate_gbps"}
    for change, key in needed.items():
        if event.change == change and not _is_given(event, key):
            yield key, f"is missing, and the change is a {change}", f"add `{key}:`"
    for key in ("down_ns", "interval_ns", "rate_gbps", "repeat"):
        of = "rate" if key == "rate_gbps" else "flap"
        if key in event.model_fields_set and _is_given(event, key) and event.change != of:
            yield key, f"is given, and the change is {event.change}", f"only a {of} has it"
    if event.down_ns and event.interval_ns and event.interval_ns <= event.down_ns:
        what = f"is {event.interval_ns}, and the link is down for {event.down_ns}"
        yield "interval_ns", what, "give more than down_ns"


def _is_given(event: LinkEvent, key: str) -> bool:
    return getattr(event, key) is not None

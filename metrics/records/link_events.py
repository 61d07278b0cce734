"""What happened to links on purpose: facts for `run.json`, and what a reader must know of them."""

from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import numpy as np

from metrics.presentation import count_text, duration_text, rate_text

__all__ = [
    "LINK_LIMIT",
    "late_end_findings",
    "link_end_rows",
    "link_event_findings",
    "link_event_rows",
    "lost_packets",
]

LINK_LIMIT = 8
"""Most links that become warnings; all stand in `run.json`."""


def link_event_rows(
    columns: Mapping[str, Any], links: Sequence[Mapping[str, Any]]
) -> list[dict[str, Any]]:
    """One entry for each thing that happened to a link, in the order of time.

    `columns` is the engine's `link_events`; `happened` is down, up, rate, avoided (the switches at
    it stopped using it) or used_again.
    """
    if not columns:
        return []
    return [
        {
            "time_ns": int(time_ps) / 1000,
            "link": str(links[int(link)]["name"]),
            "happened": str(happened),
            "rate_bps": int(rate_bps),
            "event": int(event),
        }
        for time_ps, link, happened, rate_bps, event in zip(
            *(columns[key] for key in ("time_ps", "link", "happened", "rate_bps", "event")),
            strict=True,
        )
    ]


def link_end_rows(columns: Mapping[str, Any], config: Mapping[str, Any]) -> list[dict[str, Any]]:
    """When changes took effect at each end of a link, where several agents carry the job."""
    if not columns:
        return []
    names = {
        kind: [node["name"] for node in config[f"{kind}es" if kind == "switch" else f"{kind}s"]]
        for kind in ("nic", "switch")
    }
    rows = []
    for time_ps, event, number, end, happened in zip(
        *(columns[key] for key in ("time_ps", "event", "link", "end", "happened")), strict=True
    ):
        link = config["links"][int(number)]
        place = link["b" if end else "a"]
        ((kind, index),) = place["node"].items()
        name = names[kind][index]
        rows.append(
            {
                "time_ns": int(time_ps) / 1000,
                "link": str(link["name"]),
                "end": name if kind == "nic" else f"{name}:{place['port']}",
                "happened": str(happened),
                "event": int(event),
            }
        )
    return rows


def late_end_findings(
    rows: Sequence[Mapping[str, Any]],
    orders: Mapping[str, Any],
    config: Mapping[str, Any],
) -> Iterator[str]:
    """One sentence for each ordered event whose order came after its first change was due."""
    for number in sorted({int(event) for event in orders.get("event", ())}):
        base_ps = next(
            int(base_ps)
            for event, base_ps in zip(orders["event"], orders["base_ps"], strict=True)
            if event == number
        )
        first_ps = min(change["after_ps"] for change in config["events"][number]["changes"])
        due_ns = (base_ps + first_ps) / 1000
        begun: dict[str, float] = {}
        for row in rows:
            if row["event"] == number:
                begun.setdefault(row["end"], row["time_ns"])
        late = {end: at_ns - due_ns for end, at_ns in begun.items() if at_ns > due_ns}
        if late:
            end = max(late, key=late.__getitem__)
            yield (
                f"event {number} was ordered for {duration_text(due_ns)} and began later at "
                f"{count_text(len(late))} ends, at {end} by {duration_text(late[end])}: the order "
                "was too long on its way; raise control.event_notice_ms"
            )


def lost_packets(losses: Mapping[str, Any]) -> int:
    """Frames that were lost with links: under way on them, and waiting for them."""
    return sum(int(np.sum(losses.get(f"{kind}_packets", [0]))) for kind in _LOSSES)


_LOSSES = ("under_way", "waiting")


def link_event_findings(
    rows: Sequence[Mapping[str, Any]],
    losses: Mapping[str, Any],
    job: Mapping[str, Any],
    end_ns: int,
) -> Iterator[str]:
    """One sentence for each link that something happened to, and for each event that never came."""
    of_links: defaultdict[str, list[Mapping[str, Any]]] = defaultdict(list)
    for row in rows:
        of_links[row["link"]].append(row)
    lost = _lost_by_link(losses, job)
    for name, happened in list(of_links.items())[:LINK_LIMIT]:
        yield from _of_link(name, happened, lost.get(name, 0) if losses else None, end_ns)
    if len(of_links) > LINK_LIMIT:
        more = count_text(len(of_links) - LINK_LIMIT)
        yield f"something happened to {more} more links; run.json has all of it"
    come = {row["event"] for row in rows}
    for number in range(len(job.get("events", ()))):
        if number not in come:
            yield (
                f"event {number} of the lab changed nothing: the job ended before its moment, or "
                "the links were so already"
            )


def _of_link(
    name: str, happened: Sequence[Mapping[str, Any]], lost: int | None, end_ns: int
) -> Iterator[str]:
    falls = [row for row in happened if row["happened"] == "down"]
    if falls:
        times = "once, at" if len(falls) == 1 else f"{count_text(len(falls))} times, first at"
        told = "flows waited" if lost is None else f"{count_text(lost)} packets on it and before it"
        yield (
            f"link {name} went down {times} {duration_text(falls[0]['time_ns'])}, and "
            f"was down for {duration_text(_down_ns(happened, end_ns))}: {told}"
            f"{'' if lost is None else ' were lost'}"
        )
    for row in happened:
        if row["happened"] == "rate":
            when = duration_text(row["time_ns"])
            yield f"link {name} has had {rate_text(row['rate_bps'])} from {when} on"


def _down_ns(happened: Sequence[Mapping[str, Any]], end_ns: int) -> float:
    """Time between going down and coming up, or the end."""
    total, since = 0.0, None
    for row in happened:
        if row["happened"] == "down":
            since = row["time_ns"]
        elif row["happened"] == "up" and since is not None:
            total, since = total + row["time_ns"] - since, None
    return total if since is None else total + max(end_ns - since, 0.0)


def _lost_by_link(losses: Mapping[str, Any], job: Mapping[str, Any]) -> dict[str, int]:
    lost: defaultdict[str, int] = defaultdict(int)
    for position, link in enumerate(losses.get("link", ())):
        name = str(job["links"][int(link)]["name"])
        lost[name] += sum(int(losses[f"{kind}_packets"][position]) for kind in _LOSSES)
    return dict(lost)

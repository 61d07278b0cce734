"""Warnings that follow from what was measured: failures, losses on the wires, a late wall clock."""

import math
from collections.abc import Iterator, Mapping
from typing import Any

import numpy as np
import polars as pl

from metrics.presentation import count_text, duration_text, rate_text, share_text
from metrics.records.operations import NONE_U32

__all__ = [
    "FAILURE_LIMIT",
    "LATENESS_LIMIT_RATIO",
    "adapter_findings",
    "findings",
    "lateness_ratio",
    "link_rates_bps",
]

_RATE_TOLERANCE_RATIO = 0.01
FAILURE_LIMIT = 8
"""Most failed queue pairs that become warnings; all stand in `run.json`."""
NAMED_LIMIT = 8
"""Most hosts that a warning names."""
LATENESS_LIMIT_RATIO = 0.02
"""Lateness (99th percentile, emulated) over the median completion time that is worth a warning."""
_WIRE_LOSSES = {
    "send_errors": "could not be sent",
    "receive_overflows": "were lost in a receive buffer",
    "unexpected_sources": "came from an unexpected address",
    "decode_errors": "could not be decoded",
    "icrc_errors": "had a wrong ICRC",
}


def findings(
    run: Mapping[str, Any],
    collectives: pl.DataFrame,
    wires: Mapping[str, Any],
    failures: list[dict[str, Any]],
) -> Iterator[str]:
    """One sentence for each thing that a reader of the figures must know."""
    for failure in failures[:FAILURE_LIMIT]:
        yield _failure(failure)
    for column, text in _WIRE_LOSSES.items():
        lost = int(np.sum(wires.get(column, [0])))
        if lost:
            yield f"{count_text(lost)} datagrams of the wires {text}"
    yield from _clocks(run)
    yield from _lateness(run, collectives)


def link_rates_bps(config: Mapping[str, Any]) -> dict[str, int]:
    """NIC -> rate of its link."""
    names = [nic["name"] for nic in config["nics"]]
    ends = ((end["node"], link["rate_bps"]) for link in config["links"] for end in _ends(link))
    return {names[node["nic"]]: rate_bps for node, rate_bps in ends if "nic" in node}


def _ends(link: Mapping[str, Any]) -> tuple[Any, Any]:
    return link["a"], link["b"]


def adapter_findings(
    adapters: Mapping[str, Any],
    ports: Mapping[str, Mapping[str, Any]],
    rates_bps: Mapping[str, int],
) -> Iterator[str]:
    """What is not known of NICs that RDMA devices carry, and what is wrong with them.

    `ports` is what each NIC's port can do, `rates_bps` the rates that the lab gives their links.
    """
    if count := len(adapters.get("nic", ())):
        who = (
            "1 NIC is an RDMA device"
            if count == 1
            else f"{count_text(count)} NICs are RDMA devices"
        )
        yield (
            f"{who}: packets, marks, rates and repetitions were not seen, only counted by the "
            "device itself"
        )
    yield from _unequal_rates(ports, rates_bps)
    if damaged := int(np.sum(adapters.get("payload_mismatches", [0]))):
        yield f"{count_text(damaged)} messages ended with other bytes than were sent"


def _unequal_rates(
    ports: Mapping[str, Mapping[str, Any]], rates_bps: Mapping[str, int]
) -> Iterator[str]:
    """RDMA devices whose port has another rate than the lab says, by both rates."""
    unequal: dict[tuple[int, int], list[str]] = {}
    for nic, port in ports.items():
        told_bps, lab_bps = _number(port.get("port_rate_bps")), rates_bps.get(nic, 0)
        if told_bps and abs(told_bps - lab_bps) > _RATE_TOLERANCE_RATIO * lab_bps:
            unequal.setdefault((told_bps, lab_bps), []).append(nic)
    for (told_bps, lab_bps), nics in unequal.items():
        more = len(nics) - NAMED_LIMIT
        names = ", ".join(nics[:NAMED_LIMIT]) + (f" and {more} more" if more > 0 else "")
        yield (
            f"the kernel says that the port of {names} runs at {rate_text(told_bps)}, the lab "
            f"gives its link {rate_text(lab_bps)}: ideals, slowdowns and predictions are the "
            "lab's, and an RDMA device sends as fast as its port"
        )


def _number(value: object) -> int:
    """A whole number; 0 for what an agent tells that is none."""
    return value if isinstance(value, int) else 0


def _failure(failure: Mapping[str, Any]) -> str:
    """A queue pair that gave up."""
    when_us = failure["time_ps"] / 1e6
    text = (
        f"queue pair {failure['qp']} of rank {failure['rank']} to rank {failure['peer_rank']} "
        f"failed at {when_us:.3f} us: {failure['reason']}"
    )
    op = failure.get("op", NONE_U32)
    return text if op == NONE_U32 else f"{text}; its message is operation {op}"


def _clocks(run: Mapping[str, Any]) -> Iterator[str]:
    """Which hosts' clocks were set during the run, and by how much."""
    control = run.get("control", {})
    parties = [control | {"name": "controller"}, *control.get("agents", [])]
    were_set = [party for party in parties if party.get("clock_steps")]
    if not were_set:
        return
    named = [f"{p['name']} ({p['clock_set_ns'] * 1e-9:+.3f} s)" for p in were_set[:NAMED_LIMIT]]
    more = len(were_set) - len(named)
    others = f" and {count_text(more)} more" if more else ""
    yield (
        f"clocks were set while the run went on: {', '.join(named)}{others}; the run went by "
        "CLOCK_MONOTONIC, and its times hold"
    )


def lateness_ratio(run: Mapping[str, Any], collectives: pl.DataFrame) -> float:
    """Lateness (emulated) over the median completion time.

    Of the slowest agent; 0 where nothing can be late or nothing is complete. A frame is late when
    it comes over its wire after its last bit should have arrived: the 99.9th percentile. Frames of
    a real network leave when their NIC's event is handled, and are as late: the 99th percentile of
    events.
    """
    median_ns = collectives["completion_time_ns"].median()
    if not isinstance(median_ns, float) or median_ns <= 0:
        return 0.0
    return _late_ns(run) / median_ns


def _late_ns(run: Mapping[str, Any]) -> float:
    """The slowest agent's lateness, emulated."""
    agents = run.get("control", {}).get("agents", [])
    figure = "p99_ns" if run.get("ports") else "frame_p999_ns"
    late = [agent.get("lateness", {}).get(figure) or 0 for agent in agents]
    late_ns = max(late, default=0)
    return float(late_ns) / float(run.get("time_dilation") or 1)


def _lateness(run: Mapping[str, Any], collectives: pl.DataFrame) -> Iterator[str]:
    """The machine was too slow for the time dilation."""
    ratio = lateness_ratio(run, collectives)
    if ratio > LATENESS_LIMIT_RATIO:
        dilation = float(run.get("time_dilation") or 1)
        fitting = _round_up(dilation * ratio / LATENESS_LIMIT_RATIO)
        what, remedy = "1 frame of 1000 came", f"try time dilation {fitting:.0f}"
        if run.get("ports"):
            what = "1 event of 100 was handled, and what it sent left,"
            remedy += ", of the network too, or larger messages"
        yield (
            f"the machine was too slow for time dilation {dilation:g}: {what} more "
            f"than {duration_text(_late_ns(run))} late (emulated), {share_text(ratio)} of the "
            f"median completion time, so times are too long; {remedy}"
        )


def _round_up(value: float) -> float:
    """The next of 1, 2, 5, 10, 20, 50, ..."""
    power = 10.0 ** math.floor(math.log10(value))
    return next(step * power for step in (1, 2, 5, 10) if step * power >= value)

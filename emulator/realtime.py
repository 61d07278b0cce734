"""Whether a run kept up with its clock: what its lateness means, and what would fit better.

A run is exact as long as events are handled much sooner than anything travels through the fabric;
what comes later acts like longer cables.
"""

import math
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import numpy as np

from emulator.job import Job

__all__ = ["allowed_lateness_ns", "realtime_warnings"]

_FRAME_OVERHEAD_BYTES = 82
"""Ethernet, IPv4, UDP, BTH, RETH, ICRC and FCS around the payload of a full packet."""


def realtime_warnings(
    job: Job, agents: Iterable[Mapping[str, Any]], engine: Mapping[str, Any]
) -> list[str]:
    """What a reader of the run's figures must know; empty when it kept up.

    `agents` have `name` and `lateness` (wall nanoseconds), `engine` are the run's records.
    """
    return [*_late(job, agents), *_lost_datagrams(engine)]


def allowed_lateness_ns(job: Job) -> float:
    """Wall time that the longest way through the fabric takes: delays and transmissions."""
    return longest_way_ps(job) / 1000 * job.lab.time_dilation


def longest_way_ps(job: Job) -> int:
    """Emulated one-way time of a full packet over the longest path between two NICs."""
    frame_bits = 8 * (job.lab.transport.mtu_bytes + _FRAME_OVERHEAD_BYTES)
    fabric = job.loaded.fabric
    links = {link.name: link for link in fabric.links}
    steps = {
        name: link.delay_ps + frame_bits * 10**12 // link.rate_bps for name, link in links.items()
    }
    targets = range(1, len(fabric.nics))
    return max(
        (sum(steps[name] for name in path) for nic in targets for path in fabric.paths(0, nic, 1)),
        default=0,
    )


def _late(job: Job, agents: Iterable[Mapping[str, Any]]) -> list[str]:
    late_ns = max((int(agent["lateness"].get("p99_ns", 0)) for agent in agents), default=0)
    allowed_ns = allowed_lateness_ns(job)
    if late_ns <= allowed_ns or allowed_ns == 0:
        return []
    dilation = job.lab.time_dilation
    better = _rounded_up(dilation * late_ns / allowed_ns)
    return [
        f"the machine was too slow for time dilation {dilation}: 1 % of the events were more than "
        f"{late_ns / 1e6:.1f} ms late, the longest way through the fabric takes "
        f"{allowed_ns / 1e6:.1f} ms of wall time; try --time-dilation {better}, or an idle machine"
    ]


def _lost_datagrams(engine: Mapping[str, Any]) -> list[str]:
    wires: Mapping[str, Sequence[int]] = engine.get("counters", {}).get("wires", {})
    lost = int(np.sum(wires.get("receive_overflows", [0])))
    if lost == 0:
        return []
    return [
        f"{lost:,} frames were lost in this machine's sockets, not in the fabric: their "
        "retransmissions are no finding; use a larger --time-dilation"
    ]


def _rounded_up(value: float) -> int:
    """Two leading digits, upwards."""
    if value < 10:
        return math.ceil(value)
    unit: int = 10 ** (math.floor(math.log10(value)) - 1)
    return math.ceil(value / unit) * unit

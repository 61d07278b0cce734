"""One message from a NIC to another over wires, for the benchmarks that need it.

It goes on a wire between the NICs or over a virtual switch.
"""

import json
import os
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

import numpy as np

import dataplane
from emulator.job_config import job_config
from emulator.lab import load

__all__ = [
    "DATAGRAM_BYTES",
    "PAYLOAD_BYTES",
    "Carried",
    "carry",
    "direct_config",
    "on_core_pair",
    "program",
    "switch_config",
]

PAYLOAD_BYTES = 4096
DATAGRAM_BYTES = PAYLOAD_BYTES + 58
"""A data packet without FCS: Ethernet 14, IPv4 20, UDP 8, BTH 12, ICRC 4."""
DILATION = 20
"""Line rate divided by it is more than any machine carries: the engines are as fast as they can."""
WINDOW_PACKETS = 256
_SIZE_BYTES = 1 << 36
"""More than any round sends."""
_START_AFTER_NS = 20_000_000


@dataclass(frozen=True)
class Carried:
    """What wires carried, per second of wall time."""

    datagrams_per_s: float
    """On all wires, acknowledgements included."""
    data_packets_per_s: float
    """Accepted in order by the receiving NIC, `PAYLOAD_BYTES` each."""
    overflows: int
    """Datagrams that the kernel dropped."""


@contextmanager
def on_core_pair() -> Iterator[None]:
    """Run this process and its children on two processors."""
    allowed = os.sched_getaffinity(0)
    os.sched_setaffinity(0, set(sorted(allowed)[:2]))
    try:
        yield
    finally:
        os.sched_setaffinity(0, allowed)


def switch_config() -> dict[str, Any]:
    """Two NICs at a switch, without congestion control."""
    loaded = load("single-switch", ["topology.hosts_per_leaf=2"])
    config = job_config(loaded.lab, loaded.fabric, seed=1)
    config["congestion_control"] = {"algorithm": "fixed_rate", "rate_bps": None}
    config["transport"].update(
        mtu_bytes=PAYLOAD_BYTES,
        window_packets=WINDOW_PACKETS,
        ack_every_packets=WINDOW_PACKETS // 8,
        retransmission_timeout_ps=10**12,
    )
    return config


def direct_config() -> dict[str, Any]:
    """The same NICs with a wire between them."""
    config = switch_config()
    first = config["links"][0]
    ends = {"a": {"node": {"nic": 0}, "port": 0}, "b": {"node": {"nic": 1}, "port": 0}}
    return config | {"switches": [], "links": [first | ends]}


def carry(config: dict[str, Any], nodes: Sequence[Sequence[str]], seconds: float) -> Carried:
    """Send from host0 to host1 for a time; an engine with its own thread for each of `nodes`."""
    document, programs = json.dumps(config), [program(0, 0), program(1, 1)]
    names = [nic["name"] for nic in config["nics"]]
    engines = [
        dataplane.WallEmulation(
            document, [p for p in programs if names[p.rank] in own], own, DILATION
        )
        for own in nodes
    ]
    _connect(engines)
    start_ns = time.clock_gettime_ns(time.CLOCK_MONOTONIC) + _START_AFTER_NS
    for engine in engines:
        engine.start(start_ns)
    time.sleep(_START_AFTER_NS * 1e-9 + seconds)
    for engine in engines:
        engine.stop()
    for engine in engines:
        engine.join(5.0)
    elapsed_s = (time.clock_gettime_ns(time.CLOCK_MONOTONIC) - start_ns) * 1e-9
    return _carried([engine.records()["counters"] for engine in engines], elapsed_s)


def _connect(engines: Sequence[dataplane.WallEmulation]) -> None:
    bound = [engine.bind() for engine in engines]
    ports = {end: port for own in bound for end, port in own.items()}
    for engine, own in zip(engines, bound, strict=True):
        opposite = {end: f"{end[:-1]}{1 - int(end[-1])}" for end in own}
        engine.connect({end: ("127.0.0.1", ports[opposite[end]]) for end in own})


def _carried(counters: Sequence[dict[str, Any]], elapsed_s: float) -> Carried:
    def total(table: str, column: str) -> int:
        return sum(int(part[table][column].sum()) for part in counters)

    return Carried(
        datagrams_per_s=total("wires", "datagrams_received") / elapsed_s,
        data_packets_per_s=total("nics", "data_packets_received") / elapsed_s,
        overflows=total("wires", "receive_overflows"),
    )


def program(rank: int, kind: int) -> dataplane.Program:
    """A program of one SEND (kind 0) or RECV (kind 1) with the other of two ranks."""

    def one(value: int, dtype: Any) -> Any:
        return np.array([value], dtype=dtype)

    return dataplane.Program(
        rank=rank,
        kind=one(kind, np.uint8),
        peer=one(1 - rank, np.uint32),
        size_bytes=one(_SIZE_BYTES, np.uint64),
        duration_ps=one(0, np.uint64),
        lane=one(-1, np.int32),
        peer_op=one(0, np.uint32),
        instance=one(0, np.uint32),
        row=one(0, np.uint32),
        dep_offsets=np.array([0, 0], dtype=np.uint32),
        deps=np.array([], dtype=np.uint32),
    )

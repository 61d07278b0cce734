"""Datagrams per second of wires, as a share of what a minimal loop reaches on this machine.

The minimal loop is two threads of the native crate, one calling `sendmmsg` and one `recvmmsg`, with
everything prepared. The wires are two engines, one thread each: a NIC sends RoCEv2 packets with a
4096-byte payload, encoded with ICRC, to another that verifies them and acknowledges. Once on a wire
between the NICs, once over a virtual switch, where each packet crosses two wires.
"""

import json
import statistics
import sys
import time
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

import dataplane
from emulator.job_config import job_config
from emulator.lab import load

DATAGRAM_BYTES = 4096 + 58
"""A data packet without FCS."""
ROUNDS = 5
SECONDS = 1.0
SIZE_BYTES = 1 << 36
"""More than any round sends."""
DILATION = 20
"""More than any machine keeps up with: the engines are as fast as they can."""
WINDOW_PACKETS = 256
LEAST_SHARE = 0.6


@dataclass(frozen=True)
class Rates:
    """What one round reached, per second of wall time."""

    datagrams: float
    data_packets: float


def main() -> int:
    """Measure in turns, print medians, and fail below the share that is promised."""
    direct_config, switch_config = _config(), _switch_config()
    minimal, direct, switched = [], [], []
    for _ in range(ROUNDS):
        minimal.append(dataplane.loopback_datagrams_per_s(DATAGRAM_BYTES, SECONDS))
        direct.append(_run(direct_config, (["host0"], ["host1"])))
        switched.append(_run(switch_config, (["host0", "host1"], ["leaf0"])))
    yardstick = statistics.median(minimal)
    print(f"minimal loop          {yardstick / 1e3:7.0f} k datagrams/s of {DATAGRAM_BYTES} B")
    share = _report("wire between NICs", direct, yardstick)
    _report("with a switch between", switched, yardstick)
    held = share >= LEAST_SHARE
    print(f"wires carry {share:.0%} of the minimal loop: {'holds' if held else 'BELOW'} 60 %")
    return 0 if held else 1


def _report(name: str, rounds: Sequence[Rates], yardstick: float) -> float:
    datagrams = statistics.median(rates.datagrams for rates in rounds)
    packets = statistics.median(rates.data_packets for rates in rounds)
    share = datagrams / yardstick
    print(
        f"{name:21} {datagrams / 1e3:7.0f} k datagrams/s on all wires ({share:.0%}), "
        f"{packets / 1e3:.0f} k data packets/s end to end"
    )
    return share


def _switch_config() -> dict[str, Any]:
    loaded = load("single-switch", ["topology.hosts_per_leaf=2"])
    config = job_config(loaded.lab, loaded.fabric, seed=1)
    config["congestion_control"] = {"algorithm": "fixed_rate", "rate_bps": None}
    config["transport"].update(
        window_packets=WINDOW_PACKETS,
        ack_every_packets=WINDOW_PACKETS // 8,
        retransmission_timeout_ps=10**12,
    )
    return config


def _config() -> dict[str, Any]:
    config = _switch_config()
    first = config["links"][0]
    ends = {"a": {"node": {"nic": 0}, "port": 0}, "b": {"node": {"nic": 1}, "port": 0}}
    return config | {"switches": [], "links": [first | ends]}


def _run(config: dict[str, Any], nodes: Sequence[Sequence[str]]) -> Rates:
    """One message from host0 to host1 until the time is over."""
    document, programs = json.dumps(config), [_program(0, 0), _program(1, 1)]
    names = [nic["name"] for nic in config["nics"]]
    engines = [
        dataplane.WallEmulation(
            document, [p for p in programs if names[p.rank] in own], own, DILATION
        )
        for own in nodes
    ]
    bound = [engine.bind() for engine in engines]
    ports = {end: port for own in bound for end, port in own.items()}
    for engine, own in zip(engines, bound, strict=True):
        opposite = {end: f"{end[:-1]}{1 - int(end[-1])}" for end in own}
        engine.connect({end: ("127.0.0.1", ports[opposite[end]]) for end in own})
    start_ns = time.clock_gettime_ns(time.CLOCK_MONOTONIC) + 20_000_000
    for engine in engines:
        engine.start(start_ns)
    time.sleep(0.02 + SECONDS)
    for engine in engines:
        engine.stop()
    for engine in engines:
        engine.join(5.0)
    elapsed_s = (time.clock_gettime_ns(time.CLOCK_MONOTONIC) - start_ns) / 1e9
    counters = [engine.records()["counters"] for engine in engines]
    lost = sum(int(part["wires"]["receive_overflows"].sum()) for part in counters)
    if lost:
        print(f"{lost} datagrams overflowed", file=sys.stderr)
    received = sum(int(part["wires"]["datagrams_received"].sum()) for part in counters)
    packets = sum(int(part["nics"]["data_packets_received"].sum()) for part in counters)
    return Rates(received / elapsed_s, packets / elapsed_s)


def _program(rank: int, kind: int) -> dataplane.Program:
    """A program of one SEND (kind 0) or RECV (kind 1)."""

    def one(value: int, dtype: Any) -> Any:
        return np.array([value], dtype=dtype)

    return dataplane.Program(
        rank=rank,
        kind=one(kind, np.uint8),
        peer=one(1 - rank, np.uint32),
        size_bytes=one(SIZE_BYTES, np.uint64),
        duration_ps=one(0, np.uint64),
        lane=one(-1, np.int32),
        peer_op=one(0, np.uint32),
        instance=one(0, np.uint32),
        row=one(0, np.uint32),
        dep_offsets=np.array([0, 0], dtype=np.uint32),
        deps=np.array([], dtype=np.uint32),
    )


if __name__ == "__main__":
    raise SystemExit(main())

"""Speed of jobs in virtual time: packet hops per second on one core, and against a real run.

A packet hop is a frame handed to the node at the end of a link. The demo job's real run takes its
emulated time times the lab's dilation.
"""

import json
import time
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

import dataplane
from emulator.job import JobRequest, build_job
from emulator.job_config import job_config
from emulator.lab import load

SEND, RECV = 0, 1
HOSTS = 32
MESSAGE_BYTES = 4 << 20
ROUNDS = 3

Peers = Callable[[int], Sequence[int]]
"""Rank to the ranks that it sends a message to."""


def main() -> int:
    """Predict each job some times, print the best, which others on the machine disturb least."""
    job = build_job(JobRequest("loopback-clos"))
    hops, events, seconds, emulated_s = _best(job.config_json, job.native_programs())
    run_s = emulated_s * job.loaded.lab.time_dilation
    _report("demo job, 8 hosts", hops, events, seconds)
    print(
        f"  {emulated_s * 1e3:.3f} ms emulated: {seconds:.2f} s predicted, {run_s:.1f} s run "
        f"({run_s / seconds:.0f} times as long)"
    )
    config = _clos_config()
    shapes: dict[str, Peers] = {
        "permutation": lambda rank: [(rank + HOSTS // 2) % HOSTS],
        f"{HOSTS - 1}:1 incast": lambda rank: [HOSTS - 1] if rank < HOSTS - 1 else [],
        "all-to-all": lambda rank: [(rank + step) % HOSTS for step in range(1, HOSTS)],
    }
    for name, peers in shapes.items():
        hops, events, seconds, _ = _best(config, _programs(peers))
        _report(f"{name}, {HOSTS} hosts", hops, events, seconds)
    return 0


def _report(name: str, hops: int, events: int, seconds: float) -> None:
    print(
        f"{name:24} {hops:9,} packet hops, {events:9,} events in {seconds:5.2f} s: "
        f"{hops / seconds / 1e6:.2f} M hops/s, {events / seconds / 1e6:.2f} M events/s"
    )


def _best(config: str, programs: Sequence[dataplane.Program]) -> tuple[int, int, float, float]:
    """Packet hops, events, seconds of the fastest round, emulated seconds."""
    times = []
    for _ in range(ROUNDS):
        engine = dataplane.Emulation(config, programs)
        start = time.perf_counter()
        engine.advance()
        times.append(time.perf_counter() - start)
        if not engine.is_done:
            raise SystemExit("the job stalled")
    snapshot = engine.snapshot()
    return snapshot["frames_delivered"], snapshot["events"], min(times), engine.now_ps / 1e12


def _clos_config() -> str:
    """Four leaves of eight hosts and eight spines, otherwise as in the demo."""
    overrides = ["leaves=4", "spines=8", "hosts_per_leaf=8", "fabric_link.parallel=1"]
    loaded = load("loopback-clos", [f"topology.{override}" for override in overrides])
    return json.dumps(job_config(loaded.lab, loaded.fabric, seed=1))


def _programs(peers: Peers) -> list[dataplane.Program]:
    """One message from each rank to each of its peers, all at once."""
    ops: list[list[tuple[int, int]]] = [[(SEND, peer) for peer in peers(r)] for r in range(HOSTS)]
    for rank in range(HOSTS):
        for peer in peers(rank):
            ops[peer].append((RECV, rank))
    return [_program(rank, ops) for rank in range(HOSTS)]


def _program(rank: int, ops: Sequence[Sequence[tuple[int, int]]]) -> dataplane.Program:
    mine = ops[rank]
    peer_ops = [ops[peer].index((RECV if kind == SEND else SEND, rank)) for kind, peer in mine]

    def filled(value: int, dtype: Any) -> Any:
        return np.full(len(mine), value, dtype=dtype)

    return dataplane.Program(
        rank=rank,
        kind=np.array([kind for kind, _ in mine], dtype=np.uint8),
        peer=np.array([peer for _, peer in mine], dtype=np.uint32),
        size_bytes=filled(MESSAGE_BYTES, np.uint64),
        duration_ps=filled(0, np.uint64),
        lane=filled(-1, np.int32),
        peer_op=np.array(peer_ops, dtype=np.uint32),
        instance=filled(0, np.uint32),
        row=filled(0, np.uint32),
        dep_offsets=np.zeros(len(mine) + 1, dtype=np.uint32),
        deps=np.array([], dtype=np.uint32),
    )


if __name__ == "__main__":
    raise SystemExit(main())

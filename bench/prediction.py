"""Speed of jobs in virtual time: packet hops per second on one core, and against a real run.

A packet hop is a frame handed to the node at the end of a link. The demo job is predicted and run
for real by the command itself, both to the end of the job; the wall time of each is the one that it
reports, without reading traces and writing records.

    python -m bench.prediction [--json]
"""

import json
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import numpy as np

import dataplane
from bench._report import Figure, Ratio, Report, ratios, show
from emulator.job import JobRequest, build_job
from emulator.job_config import job_config
from emulator.lab import load

DEMO = "loopback-clos"
SEND, RECV = 0, 1
HOSTS = 32
MESSAGE_BYTES = 4 << 20
ROUNDS = 3

Peers = Callable[[int], Sequence[int]]
"""Rank to the ranks that it sends a message to."""


def main() -> int:
    """Measure and print."""
    return show("Speed of jobs in virtual time.", measure)


def measure() -> Report:
    """The demo job under both clocks, then traffic patterns in virtual time alone."""
    report = Report("packet hops and events per second of wall time in virtual time, on one core")
    job = build_job(JobRequest(DEMO))
    _add_speed(report, "demo job, 8 hosts", job.config_json, job.native_programs())
    run_s = [_command_s("run")]
    predicted_s = [_command_s("predict") for _ in range(ROUNDS)]
    report.figures += [
        Figure("demo job, wall time of predict", "s", predicted_s),
        Figure("demo job, wall time of run", "s", run_s),
    ]
    dilation = job.loaded.lab.time_dilation
    report.ratios.append(
        Ratio(
            f"run (time dilation {dilation}) takes",
            "predict's wall time",
            ratios(run_s * ROUNDS, predicted_s),
        )
    )
    config = _clos_config()
    shapes: dict[str, Peers] = {
        "permutation": lambda rank: [(rank + HOSTS // 2) % HOSTS],
        f"{HOSTS - 1}:1 incast": lambda rank: [HOSTS - 1] if rank < HOSTS - 1 else [],
        "all-to-all": lambda rank: [(rank + step) % HOSTS for step in range(1, HOSTS)],
    }
    for name, peers in shapes.items():
        _add_speed(report, f"{name}, {HOSTS} hosts", config, _programs(peers))
    return report


def _add_speed(
    report: Report, name: str, config: str, programs: Sequence[dataplane.Program]
) -> None:
    hops, events = [], []
    for _ in range(ROUNDS):
        engine = dataplane.Emulation(config, programs)
        start_s = time.perf_counter()
        engine.advance()
        elapsed_s = time.perf_counter() - start_s
        if not engine.is_done:
            raise SystemExit(f"{name}: the job stalled")
        snapshot = engine.snapshot()
        hops.append(snapshot["frames_delivered"] / elapsed_s)
        events.append(snapshot["events"] / elapsed_s)
    report.figures += [
        Figure(f"{name}: packet hops", "/s", hops),
        Figure(f"{name}: events", "/s", events),
    ]


def _command_s(command: str) -> float:
    """Wall time that a command took for the demo job."""
    with tempfile.TemporaryDirectory() as directory:
        out = str(Path(directory) / command)
        line = [sys.executable, "-m", "emulator", command, DEMO, "--out", out, "--json"]
        done = subprocess.run(line, check=True, stdout=subprocess.PIPE, text=True)
    return float(json.loads(done.stdout)["wall_seconds"])


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

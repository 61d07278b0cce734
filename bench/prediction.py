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
from collections.abc import Sequence
from pathlib import Path

import dataplane
from bench._patterns import all_to_all, clos_config, incast, permutation, programs
from bench._report import Figure, Ratio, Report, ratios, show
from emulator.job import JobRequest, build_job

DEMO = "loopback-clos"
HOSTS = 32
MESSAGE_BYTES = 4 << 20
ROUNDS = 3


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
    config = clos_config(HOSTS)
    shapes = {
        "permutation": permutation(HOSTS),
        f"{HOSTS - 1}:1 incast": incast(HOSTS),
        "all-to-all": all_to_all(HOSTS),
    }
    for name, peers in shapes.items():
        _add_speed(report, f"{name}, {HOSTS} hosts", config, programs(peers, MESSAGE_BYTES))
    return report


def _add_speed(report: Report, name: str, config: str, jobs: Sequence[dataplane.Program]) -> None:
    hops, events = [], []
    for _ in range(ROUNDS):
        engine = dataplane.Emulation(config, jobs)
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


if __name__ == "__main__":
    raise SystemExit(main())

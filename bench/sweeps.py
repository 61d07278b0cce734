"""A sweep on all processors against the same sweep on one.

The limit is the number of processors: points are independent, and nothing but reading the sweep,
ranking and writing its page is left to one.

    python -m bench.sweeps [--json]
"""

import os
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from bench._report import Figure, Ratio, Report, ratios, show

ROUNDS = 3
POINTS_PER_PROCESSOR = 6
AT_LEAST = 0.8
SWEEP = """\
name: speed
description: Points that take alike long.
lab: loopback-clos
mode: predict
profile: moe-training
grid:
  ecn.kmin_bytes: [800_000]
iterations: 4
seeds: [{seeds}]
rank_by: all.p50_ns
"""


def main() -> int:
    """Measure and print; 1 if processors are left idle."""
    return show("Sweeps on several processors.", measure)


def measure() -> Report:
    """Both in turns, so that what else the machine does meets both."""
    processors = len(os.sched_getaffinity(0))
    points = POINTS_PER_PROCESSOR * processors
    report = Report(f"{points} predictions of the demo job, four iterations each")
    with tempfile.TemporaryDirectory() as directory:
        sweep = Path(directory) / "sweep.yaml"
        seeds = ", ".join(str(seed) for seed in range(1, points + 1))
        sweep.write_text(SWEEP.format(seeds=seeds), encoding="utf-8")
        pairs = [(seconds(sweep, 1), seconds(sweep, processors)) for _ in range(ROUNDS)]
    alone, together = [pair[0] for pair in pairs], [pair[1] for pair in pairs]
    report.figures = [
        Figure("--jobs 1", "s", alone),
        Figure(f"--jobs {processors}", "s", together),
    ]
    shares = [ratio / processors for ratio in ratios(alone, together)]
    report.ratios = [
        Ratio("speed-up of a sweep", f"its {processors} processors", shares, at_least=AT_LEAST)
    ]
    return report


def seconds(sweep: Path, jobs: int) -> float:
    """Wall time of the whole command."""
    with tempfile.TemporaryDirectory() as directory:
        out = Path(directory) / "out"
        command = [sys.executable, "-m", "emulator", "sweep", str(sweep)]
        command += ["--jobs", str(jobs), "--out", str(out), "--quiet"]
        began = time.monotonic()
        subprocess.run(command, check=True, stdout=subprocess.DEVNULL)
        return time.monotonic() - began


if __name__ == "__main__":
    raise SystemExit(main())

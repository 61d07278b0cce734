"""How time and memory of a prediction grow with the number of hosts: 16, 64, 256 and 1024.

Leaves of eight hosts under eight spines, 400 Gb/s. Every host sends 4 MiB to the one half the ranks
away, so that packets grow as hosts do, and an exponent of 1 means that a packet costs the same in a
lab of any size. The exponent is the slope of a least-squares line through the logarithms. Every
size runs in a process of its own; time is the processor's, without Python's start; memory is what
the process needs beyond what it had with everything imported.

    python -m bench.growth [--json]
"""

import argparse
import json
import resource
import subprocess
import sys
import time
from typing import Any

import numpy as np

import dataplane
from bench._patterns import clos_config, permutation, programs
from bench._report import Figure, Report, show

HOSTS = (16, 64, 256, 1024)
MESSAGE_BYTES = 4 << 20
ROUNDS = 3


def main() -> int:
    """Measure and print, or measure one size for the parent."""
    if "--measure" in sys.argv:
        parser = argparse.ArgumentParser()
        parser.add_argument("--measure", type=int)
        print(json.dumps(measured_here(parser.parse_args().measure)))
        return 0
    return show("Growth of a prediction's cost with the number of hosts.", measure)


def measure() -> Report:
    """Every size in turns, and the exponents of each round."""
    rounds = [[measured(hosts) for hosts in HOSTS] for _ in range(ROUNDS)]
    report = Report(
        f"predictions of a permutation, {MESSAGE_BYTES >> 20} MiB from each host: cost of a size, "
        "and the exponent of its growth"
    )
    for place, hosts in enumerate(HOSTS):
        sizes = [one[place] for one in rounds]
        for key, what, unit, scale in (
            ("hops", "packet hops", "million", 1e-6),
            ("build_s", "job built", "s", 1),
            ("engine_s", "predicted", "s", 1),
            ("peak_bytes", "memory", "MB", 1e-6),
        ):
            values = [size[key] * scale for size in sizes]
            report.figures.append(Figure(f"{hosts} hosts: {what}", unit, values))
        per_hop = [size["engine_s"] / size["hops"] * 1e9 for size in sizes]
        report.figures.append(Figure(f"{hosts} hosts: a packet hop", "ns", per_hop))
    for key, what in (
        ("engine_s", "time of the prediction"),
        ("build_s", "time to build the job"),
        ("peak_bytes", "memory"),
    ):
        exponents = [exponent([size[key] for size in one]) for one in rounds]
        report.figures.append(Figure(f"exponent of {what}", "", exponents))
    return report


def exponent(costs: list[float]) -> float:
    """Slope of the line through the logarithms of hosts and costs."""
    slope, _ = np.polyfit(np.log(HOSTS), np.log(costs), 1)
    return float(slope)


def measured(hosts: int) -> dict[str, float]:
    """One size in a process of its own."""
    command = [sys.executable, "-m", "bench.growth", "--measure", str(hosts)]
    done = subprocess.run(command, check=True, stdout=subprocess.PIPE, text=True)
    answer: dict[str, float] = json.loads(done.stdout)
    return answer


def measured_here(hosts: int) -> dict[str, Any]:
    """Build and predict; peak memory beyond that of the imports."""
    before_kb = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    start_s = time.process_time()
    engine = dataplane.Emulation(clos_config(hosts), programs(permutation(hosts), MESSAGE_BYTES))
    built_s = time.process_time()
    engine.advance()
    done_s = time.process_time()
    if not engine.is_done:
        raise SystemExit(f"{hosts} hosts: the job stalled")
    peak_kb = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    return {
        "build_s": built_s - start_s,
        "engine_s": done_s - built_s,
        "hops": int(engine.snapshot()["frames_delivered"]),
        "peak_bytes": (peak_kb - before_kb) * 1024,
    }


if __name__ == "__main__":
    raise SystemExit(main())

"""Run every benchmark, each in a process of its own: `python -m bench [--json] [NAME ...]`.

With `--json` one object is printed: the machine, and each benchmark's object under its name. The
exit status is 1 if a target is missed.
"""

import argparse
import json
import os
import pkgutil
import platform
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

HERE = Path(__file__).parent
BUSY = 0.5
"""Load average per processor from which on the machine counts as disturbed."""


def main() -> int:
    """Run the named benchmarks, or all; the worst exit status is ours."""
    known = sorted(module.name for module in pkgutil.iter_modules([str(HERE)]))
    benchmarks = [name for name in known if not name.startswith("_")]
    parser = argparse.ArgumentParser(prog="bench", description="Run benchmarks.")
    parser.add_argument("names", nargs="*", metavar="NAME", help=f"of {', '.join(benchmarks)}")
    parser.add_argument("--json", action="store_true", help="print one JSON object")
    options = parser.parse_args()
    unknown = sorted(set(options.names) - set(benchmarks))
    if unknown:
        parser.error(f"no benchmark {', '.join(unknown)}; there are {', '.join(benchmarks)}")
    names = options.names or benchmarks
    return run_for_programs(names) if options.json else run_for_people(names)


def run_for_people(names: list[str]) -> int:
    """Let each print, one after the other."""
    machine = facts()
    print(f"{machine['processors']} processors, Linux {machine['kernel']}, {machine['machine']}")
    if machine["load_average"] > BUSY * machine["processors"]:
        print(f"load average {machine['load_average']:.1f}: others disturb these measurements")
    worst, began_s = 0, time.monotonic()
    for name in names:
        print(f"\n== {name}", flush=True)
        worst = max(worst, subprocess.run(command(name), check=False).returncode)
    print(f"\n{time.monotonic() - began_s:.0f} s in all")
    return worst


def run_for_programs(names: list[str]) -> int:
    """Gather what each prints into one object."""
    worst = 0
    document: dict[str, Any] = {"machine": facts(), "benchmarks": {}}
    for name in names:
        done = subprocess.run([*command(name), "--json"], check=False, stdout=subprocess.PIPE)
        worst = max(worst, done.returncode)
        document["benchmarks"][name] = json.loads(done.stdout) if done.stdout else None
    print(json.dumps(document))
    return worst


def command(name: str) -> list[str]:
    """The benchmark in a process of its own."""
    return [sys.executable, "-m", f"bench.{name}"]


def facts() -> dict[str, Any]:
    """What the figures depend on."""
    return {
        "processors": len(os.sched_getaffinity(0)),
        "kernel": platform.release(),
        "machine": platform.machine(),
        "load_average": os.getloadavg()[0],
    }


if __name__ == "__main__":
    raise SystemExit(main())

"""Run every benchmark, each in a process of its own: `python -m bench [NAME ...]`."""

import os
import pkgutil
import platform
import subprocess
import sys
from pathlib import Path

HERE = Path(__file__).parent


def main(names: list[str]) -> int:
    """Run the named benchmarks, or all; the worst exit status is ours."""
    known = sorted(module.name for module in pkgutil.iter_modules([str(HERE)]))
    benchmarks = [name for name in known if not name.startswith("_")]
    unknown = sorted(set(names) - set(benchmarks))
    if unknown:
        print(f"no benchmark {', '.join(unknown)}; there are {', '.join(benchmarks)}")
        return 2
    print(f"{os.cpu_count()} processors, Linux {platform.release()}, {platform.machine()}")
    worst = 0
    for name in names or benchmarks:
        print(f"\n== {name}", flush=True)
        command = [sys.executable, "-m", f"bench.{name}"]
        worst = max(worst, subprocess.run(command, check=False).returncode)
    return worst


if __name__ == "__main__":
    raise SystemExit(main(sys.argv[1:]))

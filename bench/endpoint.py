"""Packets per second of the RoCEv2 endpoint on one core, without IO.

Two queue pairs exchange a WRITE stream with a 4096-byte MTU: sent, received, verified and
acknowledged, both ends on the one core. Packets are values as under the virtual clock, with one and
with 4096 queue pairs, or bytes as on a wire: encoded with ICRC, decoded, ICRC and payload verified.
The floor of the latter is two copies and two checksums of as many bytes.

    python -m bench.endpoint [--json]
"""

import json
import shutil
import subprocess
import sys
from pathlib import Path

CRATE = Path(__file__).resolve().parent.parent / "dataplane"
CASES = {
    "values": "values, 1 queue pair",
    "values_4096_qps": "values, 4096 queue pairs",
    "bytes": "bytes, both ends",
    "copies_and_checksums": "  two copies and checksums",
    "forwarded": "bytes, through a switch",
}


def main() -> int:
    """Build and run the native benchmark, print a table."""
    cargo = shutil.which("cargo")
    if cargo is None:
        print("the endpoint's benchmark is built by cargo, which is not installed: left out")
        return 0
    command = [cargo, "bench", "--quiet", "--bench", "endpoint"]
    output = subprocess.run(command, cwd=CRATE, check=True, stdout=subprocess.PIPE, text=True)
    nanoseconds = json.loads(output.stdout.strip().splitlines()[-1])
    print(json.dumps(nanoseconds) if "--json" in sys.argv[1:] else table(nanoseconds))
    return 0


def table(nanoseconds: dict[str, float]) -> str:
    """One line for each case, and what the ratios say."""
    lines = [f"{'4096-byte packets':<28} {'ns/packet':>10} {'packets/s':>12}"]
    for case, text in CASES.items():
        lines.append(f"{text:<28} {nanoseconds[case]:>10.1f} {1e9 / nanoseconds[case]:>12,.0f}")
    scaling = nanoseconds["values_4096_qps"] / nanoseconds["values"]
    floor = nanoseconds["bytes"] / nanoseconds["copies_and_checksums"]
    lines.append(
        f"4096 queue pairs cost {scaling:.2f} times one; bytes cost {floor:.2f} times their floor"
    )
    return "\n".join(lines)


if __name__ == "__main__":
    raise SystemExit(main())

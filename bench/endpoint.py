"""Packets per second of the RoCEv2 endpoint on one core, without IO.

Two queue pairs exchange a WRITE stream with a 4096-byte MTU: sent, received, verified and
acknowledged, both ends on the one core. Packets are values as under the virtual clock, with one and
with 4096 queue pairs, or bytes as on a wire: encoded with ICRC, decoded, ICRC and payload verified.
An endpoint that is given its payload needs two copies and two checksums of as many bytes for it.

    python -m bench.endpoint [--json]
"""

import json
import shutil
import subprocess
from pathlib import Path

from bench._report import Figure, Ratio, Report, ratios, show

CRATE = Path(__file__).resolve().parent.parent / "dataplane"
CASES = {
    "values": "values, 1 queue pair",
    "values_4096_qps": "values, 4096 queue pairs",
    "bytes": "bytes, 1 queue pair",
    "bytes_4096_qps": "bytes, 4096 queue pairs",
    "copies_and_checksums": "two copies and two checksums of the bytes",
    "forwarded": "bytes through a switch",
}


def main() -> int:
    """Measure and print."""
    return show("Packets per second of the endpoint.", measure)


def measure() -> Report:
    """Build and run the native benchmark, which takes the cases in turns."""
    report = Report("packets of 4096 B payload per second on one core, both ends of a WRITE stream")
    cargo = shutil.which("cargo")
    if cargo is None:
        report.remarks.append("built by cargo, which is not installed: left out")
        return report
    command = [cargo, "bench", "--quiet", "--bench", "endpoint"]
    output = subprocess.run(command, cwd=CRATE, check=True, stdout=subprocess.PIPE, text=True)
    nanoseconds: dict[str, list[float]] = json.loads(output.stdout.strip().splitlines()[-1])
    rates = {case: [1e9 / value for value in values] for case, values in nanoseconds.items()}
    report.figures = [Figure(CASES[case], "packets/s", rates[case]) for case in CASES]
    floor = "two copies and two checksums"
    report.ratios = [
        Ratio("4096 queue pairs", "one's", ratios(rates["values_4096_qps"], rates["values"])),
        Ratio("bytes", floor, ratios(rates["bytes"], rates["copies_and_checksums"])),
        Ratio(
            "bytes with 4096 queue pairs",
            floor,
            ratios(rates["bytes_4096_qps"], rates["copies_and_checksums"]),
        ),
    ]
    return report


if __name__ == "__main__":
    raise SystemExit(main())

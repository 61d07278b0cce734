"""A ring all-reduce and an all-to-all of 64 ranks in virtual time, against their closed forms.

The ideal is S x F / G + steps x L: S bytes, F the busbw factor (all-reduce 2(n-1)/n, all-to-all
(n-1)/n), G the line rate times 4096/4178, for 82 bytes of headers, checks, preamble and gap go with
4096 bytes of payload; steps 2(n-1) for the ring and 1 for the all-to-all; L the latency of a path:
propagation, and a packet's time on each line but the first. Nothing congests: on one switch every
pattern of the two is a permutation, and on the Clos the ring has one flow for each leaf to leave.

    python -m bench.closed_form [--json]
"""

import subprocess
import sys
import tempfile
from pathlib import Path

from bench._report import Figure, Ratio, Report, show
from metrics.records import load

RANKS = 64
SIZE_BYTES = 64 << 20
WITHIN = 0.01
RING = "collectives.rules=[{collective: all_reduce, algorithm: ring}]"
PAIRWISE = "collectives.rules=[{collective: all_to_all, algorithm: pairwise}]"
ONE_SWITCH = (f"topology.hosts_per_leaf={RANKS}", f"switches.buffer_bytes={256 << 20}")
CASES = {
    "ring all-reduce, one switch": ("single-switch", (*ONE_SWITCH, RING), "all-reduce"),
    "ring all-reduce, two-tier Clos": ("clos-64", (RING,), "all-reduce"),
    "all-to-all, one switch": ("single-switch", (*ONE_SWITCH, PAIRWISE), "all-to-all"),
}


def main() -> int:
    """Measure and print; 1 if a time is not within 1 % of its ideal."""
    return show("Collectives in virtual time against their closed forms.", measure)


def measure() -> Report:
    """Every case once: virtual time has no spread."""
    report = Report(
        f"{RANKS} ranks, 400 Gb/s, S = {SIZE_BYTES >> 20} MiB; ideal S x F / (400 Gb/s x 4096/4178)"
        " + steps x latency"
    )
    for name, (lab, overrides, profile) in CASES.items():
        time_ns, ideal_ns, marks = collective(lab, overrides, profile)
        if marks:
            raise SystemExit(f"{name}: something congested")
        if time_ns < (1 - WITHIN) * ideal_ns:
            raise SystemExit(f"{name}: faster than possible")
        report.figures += [
            Figure(f"{name}: time", "us", [time_ns / 1e3]),
            Figure(f"{name}: ideal", "us", [ideal_ns / 1e3]),
            Figure(f"{name}: above its ideal", "%", [(time_ns / ideal_ns - 1) * 100]),
        ]
        what = f"{name}: time"
        report.ratios.append(Ratio(what, "its ideal", [time_ns / ideal_ns], below=1 + WITHIN))
    return report


def collective(lab: str, overrides: tuple[str, ...], profile: str) -> tuple[float, float, int]:
    """Completion time and ideal of one collective, ns, and the packets that were marked."""
    with tempfile.TemporaryDirectory() as directory:
        out = Path(directory) / "records"
        job = f"{profile},size_bytes={SIZE_BYTES},repeats=1"
        command = [sys.executable, "-m", "emulator", "predict", lab, "--profile", job]
        command += [part for override in overrides for part in ("--set", override)]
        command += ["--out", str(out), "--quiet"]
        subprocess.run(command, check=True, stdout=subprocess.DEVNULL)
        row = load(out).collectives.row(0, named=True)
    return row["completion_time_ns"], row["ideal_ns"], int(row["marked_packets"])


if __name__ == "__main__":
    raise SystemExit(main())

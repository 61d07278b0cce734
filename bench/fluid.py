"""Error and speed of predictions by flows against predictions by packets, over labs and jobs.

Each job is predicted twice, by packets and by flows, under each congestion control; the error is
that of every collective's completion time, (flows - packets) / packets.

    python -m bench.fluid [--json] [--write]

`--write` keeps the result where labels (metrics/fluid_error.json) and docs (docs/fluid.md) take it.
"""

import argparse
import json
import tempfile
import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl

import dataplane
from bench._report import Figure, Ratio, Report, tell
from emulator.commands.execution import run_document, store
from emulator.job import JobRequest, build_job
from emulator.predict import predict
from metrics.compare.times import matched_collectives
from metrics.fluid import ERROR_FILE
from metrics.presentation import count_text, duration_text, kind_text, share_text
from metrics.records import RunRecords

ROOT = Path(__file__).parents[1]
CONTROLS: Mapping[str, Sequence[str]] = {
    "dcqcn": (),
    "swift": ("congestion_control={algorithm: swift}",),
    "fixed_rate": ("congestion_control={algorithm: fixed_rate}",),
}
"""Name -> what is changed in the lab, whose own is DCQCN; fixed_rate is the line rate, with PFC."""
JOBS: Sequence[tuple[str, str, float]] = (
    ("loopback-clos", "moe-training", 1.0),
    ("loopback-clos", "all-reduce", 1.0),
    ("loopback-clos", "all-to-all", 1.0),
    ("loopback-clos", "permutation", 1.0),
    ("incast-8", "incast", 1.0),
    ("rail-optimised", "moe-training", 0.25),
    ("rail-optimised", "llama-step", 0.25),
    ("clos-64", "llama-step", 0.25),
    ("clos-64", "all-reduce", 0.25),
    ("clos-64", "all-to-all", 0.25),
    ("link-flap", "moe-training", 1.0),
    ("link-flap", "all-reduce", 1.0),
)
"""Lab, profile, factor on message sizes."""
EVENTFUL = frozenset({"link-flap"})
"""Labs whose links change on the way: told by themselves, and not in what is told of all."""
MARK = "<!-- measured -->"


@dataclass(frozen=True)
class Case:
    """One job under one congestion control, both ways."""

    control: str
    lab: str
    profile: str
    size_scale: float
    matched: pl.DataFrame
    """Collectives with `first_ns` (packets), `second_ns` (flows), `error_ratio`."""
    wall_s: tuple[float, float]

    def rows(self) -> Iterator[dict[str, Any]]:
        """Error per kind of collective."""
        for (kind,), group in sorted(self.matched.group_by("kind"), key=lambda pair: str(pair[0])):
            errors = group["error_ratio"].to_numpy()
            yield {
                "congestion_control": self.control,
                "lab": self.lab,
                "profile": self.profile,
                "size_scale": self.size_scale,
                "kind": kind,
                "packets_median_ns": float(group["first_ns"].median() or 0),  # type: ignore[arg-type]
                "fluid_median_ns": float(group["second_ns"].median() or 0),  # type: ignore[arg-type]
                "median_error_ratio": float(np.median(errors)),
                **absolute(errors),
            }


def absolute(errors: Any) -> dict[str, Any]:
    """Quantiles of the size of the error, by nearest rank."""
    sizes = np.sort(np.abs(errors))
    rank = int(np.ceil(0.95 * len(sizes))) - 1
    return {
        "count": len(sizes),
        "median_absolute_error_ratio": float(sizes[(len(sizes) - 1) // 2]),
        "p95_absolute_error_ratio": float(sizes[rank]),
        "worst_absolute_error_ratio": float(sizes[-1]),
    }


def main() -> int:
    """Measure, print, and keep if asked to."""
    parser = argparse.ArgumentParser(description="Flows against packets.")
    parser.add_argument("--json", action="store_true", help="print one JSON object")
    parser.add_argument("--write", action="store_true", help="keep the result in the repository")
    options = parser.parse_args()
    cases = [measure(control, *job) for control in CONTROLS for job in JOBS]
    document = as_document(cases)
    if options.write:
        keep(document)
    return tell(report(cases, document), is_json=options.json)


def measure(control: str, lab: str, profile: str, size_scale: float) -> Case:
    """Predict one job both ways."""
    sides, walls = [], []
    with tempfile.TemporaryDirectory(prefix="rankwire-") as directory:
        for model in ("packets", "fluid"):
            place = Path(directory) / model
            records, wall_s = predicted(lab, CONTROLS[control], profile, size_scale, model, place)
            sides.append(records)
            walls.append(wall_s)
        matched = matched_collectives(sides[0], sides[1])
    return Case(control, lab, profile, size_scale, matched, (walls[0], walls[1]))


def predicted(
    lab: str, overrides: Sequence[str], profile: str, size_scale: float, model: Any, place: Path
) -> tuple[RunRecords, float]:
    """Records, and the wall time of the engine alone."""
    job = build_job(JobRequest(lab, overrides, None, profile, size_scale=size_scale, model=model))
    start_s = time.perf_counter()
    engine = predict(job)
    wall_s = time.perf_counter() - start_s
    return store(place, job, engine, run_document(job, "predict", {})), wall_s


def as_document(cases: Sequence[Case]) -> dict[str, Any]:
    """What is kept: every row, and all collectives under each congestion control together."""
    pooled = {}
    for control in CONTROLS:
        mine = [
            case.matched for case in cases if case.control == control and case.lab not in EVENTFUL
        ]
        collectives = pl.concat(mine).filter(pl.col("kind").cast(pl.String) != "send_recv")
        pooled[control] = absolute(collectives["error_ratio"].to_numpy())
    labs = ", ".join(dict.fromkeys(lab for lab, _, _ in JOBS if lab not in EVENTFUL))
    profiles = ", ".join(dict.fromkeys(profile for _, profile, _ in JOBS))
    return {
        "version": dataplane.__version__,
        "conditions": f"labs {labs}; profiles {profiles}; seed 1",
        "by_congestion_control": pooled,
        "rows": [row for case in cases for row in case.rows()],
    }


def keep(document: Mapping[str, Any]) -> None:
    """Write the file of the labels and the table of the docs."""
    path = ROOT / "metrics" / ERROR_FILE
    path.write_text(json.dumps(document, indent=1) + "\n", encoding="utf-8")
    page = ROOT / "docs" / "fluid.md"
    before, _, rest = page.read_text(encoding="utf-8").partition(MARK)
    _, _, after = rest.partition(MARK)
    page.write_text(before + MARK + "\n\n" + table(document) + "\n" + MARK + after, "utf-8")


def table(document: Mapping[str, Any]) -> str:
    """The rows in Markdown."""
    lines = [
        "| congestion control | lab | profile | collective | count | by packets, median "
        "| by flows, median | median error | \\|error\\| median | p95 | worst |",
        "|---|---|---|---|---:|---:|---:|---:|---:|---:|---:|",
    ]
    for row in document["rows"]:
        scale = "" if row["size_scale"] == 1 else f" x {row['size_scale']:g}"
        cells = [
            row["congestion_control"],
            row["lab"],
            row["profile"] + scale,
            kind_text(row["kind"]),
            count_text(row["count"]),
            duration_text(row["packets_median_ns"]),
            duration_text(row["fluid_median_ns"]),
            f"{100 * row['median_error_ratio']:+.1f} %",
            *errors_text(row),
        ]
        lines.append("| " + " | ".join(cells) + " |")
    for control, row in document["by_congestion_control"].items():
        cells = [
            f"**{control}**", "all without events", "all", "all but send/recv",
            count_text(row["count"]), "", "", "", *errors_text(row),
        ]  # fmt: skip
        lines.append("| " + " | ".join(cells) + " |")
    return "\n".join(lines) + "\n"


def errors_text(row: Mapping[str, Any]) -> list[str]:
    """Median, p95 and worst of the size of the error."""
    names = ("median", "p95", "worst")
    return [share_text(row[f"{name}_absolute_error_ratio"]) for name in names]


def report(cases: Sequence[Case], document: Mapping[str, Any]) -> Report:
    """Figures in per cent, and how much faster flows are."""
    made = Report("error of collectives' completion times by flows against packets; wall time")
    for control, row in document["by_congestion_control"].items():
        for name in ("median", "p95", "worst"):
            value = 100 * row[f"{name}_absolute_error_ratio"]
            made.figures.append(Figure(f"{control}: |error|, {name}", "%", [value]))
    for case in cases:
        if case.control == "dcqcn":
            speed = [case.wall_s[0] / case.wall_s[1]]
            made.ratios.append(
                Ratio(f"{case.lab}, {case.profile}: wall time of packets", "that of flows", speed)
            )
    made.remarks.append(document["conditions"])
    return made


if __name__ == "__main__":
    raise SystemExit(main())

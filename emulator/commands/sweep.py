"""`rankwire sweep`: a job under a grid of settings, ranked by one figure."""

import argparse
import json
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from rich.console import Console
from rich.progress import (
    BarColumn,
    MofNCompleteColumn,
    Progress,
    TextColumn,
    TimeElapsedColumn,
    TimeRemainingColumn,
)

from dataplane.errors import InputError, Problem
from emulator.commands.arguments import positive_int
from emulator.run_directory import writing
from emulator.sweep.execution import Drive, PointResult, run_points
from emulator.sweep.expectations import Measured, Outcome, check_expectations
from emulator.sweep.lateness import lateness_warnings
from emulator.sweep.page import write_page
from emulator.sweep.points import Points, expand_points
from emulator.sweep.ranking import Ranking, rank, ranking_table, write_ranking
from emulator.sweep.significance import significance_warnings
from emulator.sweep.spec import LoadedSweep, load_sweep
from emulator.terminal import print_lines, print_table

__all__ = ["execute", "register"]

_EPILOG = """\
examples:
  rankwire sweep lab_configs/sweeps/dcqcn-ecn.yaml
  rankwire sweep my-sweep.yaml --jobs 8 --out runs/my-sweep

An interrupted sweep goes on where it was when it is started again with the same --out."""


def register(subparsers: "argparse._SubParsersAction[argparse.ArgumentParser]") -> None:
    """Add the subcommand."""
    parser = subparsers.add_parser(
        "sweep",
        help="many settings against one job, ranked",
        description="Run or predict a job under every combination of a grid of settings, and "
        "rank them by one figure.",
        epilog=_EPILOG,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("spec", metavar="SPEC", type=Path, help="sweep file (YAML)")
    parser.add_argument("--out", metavar="DIR", type=Path, help="default runs/sweep-NAME")
    parser.add_argument(
        "--jobs",
        "--workers",
        dest="workers",
        type=positive_int,
        metavar="N",
        help="predictions at a time, a process each (default: one per processor that this process "
        "may use); the results don't depend on it",
    )
    parser.add_argument("--json", action="store_true", help="print one JSON object on stdout")
    parser.add_argument("--quiet", action="store_true", help="no progress on stderr")
    parser.set_defaults(execute=execute)


def execute(options: argparse.Namespace) -> int:
    """Run what is left of the sweep, then rank and store.

    1 when a point failed or an expectation does not hold.
    """
    sweep = load_sweep(options.spec)
    points = expand_points(sweep)
    directory = _directory(options, sweep)
    drive = _run_drive() if sweep.spec.mode == "run" else None
    results = list(_shown(sweep, points, directory, drive, options))
    ranking = rank(points.points, results, sweep.spec.rank_by)
    complete = [result.directory for result in results if result.is_complete]
    warnings = significance_warnings(ranking)
    if drive is not None:
        warnings += lateness_warnings(complete)
    outcomes = _expectations(sweep, points, results)
    _store(ranking, sweep, points, directory, warnings, outcomes)
    _tell(ranking, points, results, directory, warnings, outcomes, options)
    is_good = all(result.is_complete for result in results) and all(o.holds for o in outcomes)
    return 0 if is_good else 1


def _expectations(sweep: LoadedSweep, points: Points, results: list[PointResult]) -> list[Outcome]:
    figures = {result.digest: result.figures for result in results}
    measured = [
        Measured(point.settings, point.seed, figures.get(point.digest, {}))
        for point in points.points
    ]
    return check_expectations(sweep.spec.expect, measured)


def _directory(options: argparse.Namespace, sweep: LoadedSweep) -> Path:
    """The sweep's directory: a new one, or that of the same sweep."""
    path: Path = options.out or Path("runs") / f"sweep-{sweep.spec.name}"
    mark = path / "sweep.name"
    try:
        if path.exists() and any(path.iterdir()) and _name_in(mark) != sweep.spec.name:
            what = f"holds something else than the sweep {sweep.spec.name}"
            raise InputError(Problem(str(path), what, "give another directory with --out"))
        path.mkdir(parents=True, exist_ok=True)
        mark.write_text(sweep.spec.name, encoding="utf-8")
    except OSError as error:
        what = f"can't be written: {error.strerror or error}"
        remedy = "give a writable directory with --out"
        raise InputError(Problem(str(path), what, remedy)) from error
    return path


def _name_in(mark: Path) -> str | None:
    return mark.read_text(encoding="utf-8") if mark.is_file() else None


def _shown(
    sweep: LoadedSweep,
    points: Points,
    directory: Path,
    drive: Drive | None,
    options: argparse.Namespace,
) -> Iterator[PointResult]:
    """The results, with a bar on stderr."""
    console = Console(stderr=True)
    with Progress(
        TextColumn("[bold]{task.description}"),
        BarColumn(bar_width=24),
        MofNCompleteColumn(),
        TimeElapsedColumn(),
        TimeRemainingColumn(),
        console=console,
        transient=True,
        disable=options.quiet or not console.is_terminal,
    ) as progress:
        task = progress.add_task(f"{sweep.spec.name} {sweep.spec.mode}", total=len(points.points))
        for result in run_points(points.points, directory, workers=options.workers, drive=drive):
            progress.advance(task)
            if not result.is_complete:
                print(f"rankwire: {result.directory}: {result.outcome}", file=sys.stderr)
            yield result


def _run_drive() -> Drive:
    from emulator.commands.run import sweep_drive  # noqa: PLC0415  only real runs need it

    return sweep_drive


def _store(
    ranking: Ranking,
    sweep: LoadedSweep,
    points: Points,
    directory: Path,
    warnings: list[str],
    outcomes: list[Outcome],
) -> None:
    facts: dict[str, Any] = {
        "name": sweep.spec.name,
        "spec": sweep.spec.model_dump(mode="json"),
        "spec_file": str(sweep.path),
        "impossible": [
            {"settings": settings, "reason": reason} for settings, reason in points.impossible
        ],
        "warnings": warnings,
        "expectations": [outcome.as_dict() for outcome in outcomes],
    }
    write_ranking(ranking, directory, facts)
    better = "higher" if ranking.higher_is_better else "lower"
    notes = [
        sweep.spec.description,
        f"{sweep.spec.mode} of {sweep.spec.trace or sweep.spec.profile or 'the default profile'} "
        f"on {', '.join(sweep.labs)}; iterations {sweep.spec.iterations}, "
        f"size scale {sweep.spec.size_scale:g}, compute scale {sweep.spec.compute_scale:g}; "
        f"{better} {ranking.figure} is better",
        f"{len(points.impossible)} combinations left out as impossible",
        *(f"Expectation {outcome.text}" for outcome in outcomes),
        *(f"Warning: {warning}" for warning in warnings),
    ]
    write_page(ranking, directory / "sweep.html", title=f"Sweep {sweep.spec.name}", notes=notes)
    with writing(directory):
        source = sweep.path.read_text(encoding="utf-8")
        (directory / "spec.yaml").write_text(source, encoding="utf-8")


def _tell(
    ranking: Ranking,
    points: Points,
    results: list[PointResult],
    directory: Path,
    warnings: list[str],
    outcomes: list[Outcome],
    options: argparse.Namespace,
) -> None:
    failed = sum(not result.is_complete for result in results)
    reused = sum(result.reused for result in results)
    if options.json:
        document = {
            "directory": str(directory),
            "rank_by": ranking.figure,
            "points": len(results),
            "failed": failed,
            "reused": reused,
            "impossible": len(points.impossible),
            "warnings": warnings,
            "expectations": [outcome.as_dict() for outcome in outcomes],
            "table": ranking.table.to_dicts(),
        }
        print(json.dumps(document))
        return
    print_table(ranking_table(ranking))
    better = "higher" if ranking.higher_is_better else "lower"
    print_lines(
        f"{len(results)} points ({reused} from before, {failed} failed, "
        f"{len(points.impossible)} impossible); {better} {ranking.figure} is better",
        *(outcome.text for outcome in outcomes),
        *(f"warning: {warning}" for warning in warnings),
        f"table: {directory / 'sweep.parquet'}",
        f"page:  {directory / 'sweep.html'}",
    )

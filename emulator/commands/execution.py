"""What `run` and `predict` have in common: build the job, drive it, keep the records, tell."""

import argparse
import json
import sys
import time
from collections.abc import Callable
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from dataplane.errors import RunError
from emulator.capture import capture_line, write_capture
from emulator.commands.arguments import add_job_arguments, positive_int
from emulator.commands.options import binding_options
from emulator.control.outcome import ControlReport, EngineRecords, RunFailed, RunInterrupted
from emulator.fluid import model_facts
from emulator.job import Job, JobRequest, build_job
from emulator.progress import ProgressDisplay, ProgressPoint
from emulator.run_directory import make_run_directory, writing
from emulator.terminal import print_lines, print_table
from metrics.records import RunRecords, verify_bytes, write_records
from metrics.report import write_report
from metrics.summary import summarise, summary_table

__all__ = [
    "Drive",
    "add_execution_arguments",
    "control_facts",
    "execute_job",
    "run_document",
    "store",
]

Drive = Callable[[Job, Path, ProgressDisplay], tuple[EngineRecords, dict[str, Any]]]
"""Drives a job to its end: engine records, and facts for `run.json`."""


def add_execution_arguments(parser: argparse.ArgumentParser) -> None:
    """What `run` and `predict` take alike."""
    add_job_arguments(parser)
    parser.add_argument(
        "--out",
        metavar="DIR",
        help="directory of the records (default runs/TIME-LAB-COMMAND); must not hold anything",
    )
    parser.add_argument(
        "--capture",
        metavar="LINK[,LINK...]",
        help="keep the frames of these links (globs; LINK/0 and LINK/1 are what leaves one end) in "
        "DIR/capture.pcapng with emulated times",
    )
    parser.add_argument(
        "--capture-packets",
        type=positive_int,
        default=10_000,
        metavar="N",
        help="keep the first N frames (default 10000)",
    )
    parser.add_argument("--json", action="store_true", help="print one JSON object on stdout")
    parser.add_argument("--quiet", action="store_true", help="no progress on stderr")


def job_request(options: argparse.Namespace) -> JobRequest:
    """What the options ask for."""
    return JobRequest(
        lab=options.lab,
        overrides=(*options.set, *_sampling(options)),
        trace=None if options.trace is None else Path(options.trace),
        profile=options.profile,
        binding=binding_options(options),
        iterations=options.iterations,
        size_scale=options.size_scale,
        compute_scale=options.compute_scale,
        seed=options.seed,
        model=getattr(options, "model", "packets"),
        capture=options.capture.split(",") if options.capture else (),
        capture_packets=options.capture_packets,
    )


def _sampling(options: argparse.Namespace) -> list[str]:
    """The resolution of the series as a change of the lab."""
    interval_ns = options.sample_interval
    return [] if interval_ns is None else [f"telemetry.sample_interval_ns={interval_ns}"]


def execute_job(options: argparse.Namespace, command: str, drive: Drive) -> int:
    """Build, drive, record and report; returns the exit status.

    The records of a failed or interrupted job are kept as well.
    """
    with ProgressDisplay(Path(options.lab).stem, quiet=options.quiet) as display:
        job = build_job(
            job_request(options), on_phase=lambda phase: display.update(ProgressPoint(phase))
        )
        directory = make_run_directory(options.out, job.loaded.lab.name, command)
        driven = _drive(job, directory, display, drive)
    if driven.engine is not None:
        with writing(directory):
            captured = write_capture(directory, job.config, driven.engine)
            run = run_document(job, command, driven.facts | captured)
            records = store(directory, job, driven.engine, run)
        _tell(records, options)
        if driven.failure is None:
            verify_bytes(records)
    return _status(driven, directory)


@dataclass(frozen=True, slots=True)
class _Driven:
    """How driving a job ended."""

    engine: EngineRecords | None
    facts: dict[str, Any]
    failure: RunFailed | None


def _drive(job: Job, directory: Path, display: ProgressDisplay, drive: Drive) -> _Driven:
    """Drive; an empty directory is not left behind."""
    started_at = datetime.now(UTC).isoformat(timespec="seconds")
    started_s = time.monotonic()
    engine: EngineRecords | None = None
    failure: RunFailed | None = None
    facts: dict[str, Any] = {}
    try:
        engine, facts = drive(job, directory, display)
    except RunFailed as error:
        failure, engine = error, error.records
        facts = control_facts(error.report)
    finally:
        if engine is None:
            directory.rmdir()
    facts |= {
        "started_at": started_at,
        "wall_seconds": time.monotonic() - started_s,
        "outcome": "complete" if failure is None else str(failure),
    }
    return _Driven(engine, facts, failure)


def control_facts(report: ControlReport | None) -> dict[str, Any]:
    """What `run.json` holds about the agents, and about their ports where the network is real."""
    if report is None:
        return {}
    facts: dict[str, Any] = {"control": report.as_dict()}
    return facts | {"ports": report.ports} if report.ports else facts


def run_document(job: Job, command: str, facts: dict[str, Any]) -> dict[str, Any]:
    """What `run.json` holds beside the results."""
    return {**job.run_info, **clock_facts(job, command), **facts}


def clock_facts(job: Job, command: str) -> dict[str, Any]:
    """What `run.json` says about the clock: a prediction's is virtual, and not dilated.

    A prediction also tells its model.
    """
    if command == "predict":
        clock = {"command": command, "clock": "virtual", "time_dilation": 1}
        return clock | model_facts(job)
    return {"command": command, "clock": "wall", "time_dilation": job.lab.time_dilation}


def store(directory: Path, job: Job, engine: EngineRecords, run: dict[str, Any]) -> RunRecords:
    """Write the records of a job; the same tables for run and predict."""
    return write_records(
        directory,
        run=run,
        programs=job.programs,
        instances=job.compiled.instances,
        config=job.config,
        engine=engine,
        row_names=job.row_names,
        lanes=job.compiled.lanes,
    )


def _tell(records: RunRecords, options: argparse.Namespace) -> None:
    with writing(records.directory):
        report = write_report(records.directory)
    rows = summarise(records.collectives)
    if options.json:
        print(json.dumps(_as_json(records, report, [row.as_dict() for row in rows])))
        return
    print_table(summary_table(rows))
    facts = records.run
    emulated, wall = facts["emulated_ns"] / 1e6, facts["wall_seconds"]
    print_lines(
        f"% of ideal: {facts['ideal']['formula']}",
        f"{emulated:.3f} ms emulated in {wall:.1f} s of wall time",
        *(f"warning: {warning}" for warning in facts["warnings"]),
        f"records: {records.directory}",
        *(capture_line(facts[key], records.directory) for key in ("capture",) if key in facts),
        f"report:  {report}",
    )


def _as_json(records: RunRecords, report: Path, rows: list[dict[str, Any]]) -> dict[str, Any]:
    facts = records.run
    return {
        "directory": str(records.directory),
        "report": str(report),
        "outcome": facts["outcome"],
        "model": facts.get("model"),
        "emulated_ns": facts["emulated_ns"],
        "wall_seconds": facts["wall_seconds"],
        "ops_done": facts["ops_done"],
        "ops_total": facts["ops_total"],
        "byte_conservation": facts["byte_conservation"],
        "ideal": facts["ideal"],
        "collectives": rows,
        "warnings": facts["warnings"],
    }


def _status(driven: _Driven, directory: Path) -> int:
    if driven.failure is None:
        return 0
    kept = f"; records so far: {directory}" if driven.engine is not None else ""
    print(f"rankwire: {driven.failure}{kept}", file=sys.stderr)
    return 130 if isinstance(driven.failure, RunInterrupted) else RunError.exit_status

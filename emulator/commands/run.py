"""`rankwire run`: the job for real, with agents, packets and wires."""

import argparse
import contextlib
import sys
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any

import numpy as np

from emulator.commands.arguments import natural, positive_int
from emulator.commands.execution import add_execution_arguments, control_facts, execute_job
from emulator.control.outcome import ControlReport, EngineRecords, Progress
from emulator.controller import run
from emulator.job import Job
from emulator.kernel_counters import with_kernel_counters
from emulator.progress import ProgressDisplay, ProgressPoint
from metrics.exporter import Exporter
from traffic_profiles.program import OpKind

__all__ = ["execute", "register", "sweep_drive", "tell_long_run"]

_EPILOG = """\
examples:
  rankwire run loopback-clos                            the demo job on the demo lab
  rankwire run my-lab.yaml --trace traces/ --iterations 3
  rankwire run loopback-clos --set dcqcn.preset=paper --set ecn.kmin_bytes=400000
  rankwire run single-switch --trace traces/ --size-scale 0.001 --metrics-port 9464

Ctrl-C ends a run in order and keeps the records so far."""


_LONG_RUN_S = 120


def register(subparsers: "argparse._SubParsersAction[argparse.ArgumentParser]") -> None:
    """Add the subcommand."""
    parser = subparsers.add_parser(
        "run",
        help="drive a lab with a job, for real",
        description="Drive a lab with the traffic of a job: agents, real packets on wires, wall "
        "clock stretched by the time dilation.",
        epilog=_EPILOG,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    add_execution_arguments(parser)
    parser.add_argument(
        "--time-dilation",
        type=positive_int,
        metavar="S",
        help="wall seconds per emulated second: rates are divided by it, timers multiplied "
        "(default: the lab's time_dilation)",
    )
    parser.add_argument(
        "--metrics-port",
        type=natural,
        metavar="P",
        help="serve Prometheus metrics on http://127.0.0.1:P/metrics during the run; 0: any port",
    )
    parser.set_defaults(execute=execute)


def execute(options: argparse.Namespace) -> int:
    """Run and report."""
    if options.time_dilation is not None:
        options.set = [*options.set, f"time_dilation={options.time_dilation}"]

    def drive(
        job: Job, directory: Path, display: ProgressDisplay
    ) -> tuple[EngineRecords, dict[str, Any]]:
        tell_long_run(job)
        with _exporter(job, directory.name, options.metrics_port) as on_metrics:
            return _drive(job, display, on_metrics)

    return execute_job(options, "run", drive)


def tell_long_run(job: Job) -> None:
    """Say beforehand that computation or communication alone will take minutes of wall time."""
    parts = {
        "computation": (longest_computation_ps(job), ", --compute-scale or --idle drop"),
        "communication": (longest_communication_ps(job), " or --size-scale"),
    }
    for part, (least_ps, remedy) in parts.items():
        least_s = least_ps * 1e-12 * job.lab.time_dilation
        if least_s > _LONG_RUN_S:
            print(
                f"rankwire: {part} alone takes {least_s / 60:.0f} min of wall time at time "
                f"dilation {job.lab.time_dilation}; a smaller --time-dilation{remedy} "
                "shortens it",
                file=sys.stderr,
            )


def longest_computation_ps(job: Job) -> int:
    """Emulated time that the busiest lane of any rank computes: the job takes at least that."""
    longest = 0
    for program in job.programs:
        on_lane = program.lane >= 0
        busy = np.bincount(program.lane[on_lane], program.duration_ps[on_lane].astype(np.float64))
        longest = max(longest, int(busy.max(initial=0)))
    return longest


def longest_communication_ps(job: Job) -> int:
    """Emulated time that the busiest rank sends at the fastest link's rate: a lower bound."""
    rate_bps = max(int(link["rate_bps"]) for link in job.config["links"])
    sends = [p.size_bytes[p.kind == OpKind.SEND] for p in job.programs]
    sent_bytes = max((int(sizes.sum()) for sizes in sends), default=0)
    return sent_bytes * 8 * 10**12 // rate_bps


def sweep_drive(job: Job) -> tuple[EngineRecords, dict[str, Any]]:
    """Run one point of a sweep."""
    return _drive(job, None, None)


_OnMetrics = Callable[[Mapping[str, Any], Mapping[str, Any]], None]


def _drive(
    job: Job, display: ProgressDisplay | None, on_metrics: _OnMetrics | None
) -> tuple[EngineRecords, dict[str, Any]]:
    reports: list[ControlReport] = []
    engine = with_kernel_counters(
        job.loaded,
        lambda: run(
            job,
            on_progress=None if display is None else lambda state: display.update(_point(state)),
            on_metrics=on_metrics,
            on_report=reports.append,
        ),
    )
    return engine, control_facts(reports[0] if reports else None)


@contextlib.contextmanager
def _exporter(job: Job, name: str, port: int | None) -> Iterator[_OnMetrics | None]:
    if port is None:
        yield None
        return
    exporter = Exporter(
        port,
        config=job.config,
        programs=job.programs,
        instances=job.compiled.instances,
        time_dilation=job.lab.time_dilation,
        labels={"command": "run", "lab": job.lab.name, "run": name},
    )
    print(f"metrics: http://127.0.0.1:{exporter.port}/metrics", file=sys.stderr)
    try:
        yield exporter.update
    finally:
        exporter.close()


def _point(state: Progress) -> ProgressPoint:
    return ProgressPoint(
        phase=state.phase,
        operations_done=state.operations_done,
        operations_total=state.operations_total,
        emulated_ps=state.emulated_ps,
        late_frames=state.late_frames,
        notices=tuple(state.notices),
    )

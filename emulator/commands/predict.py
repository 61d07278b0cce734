"""`rankwire predict`: the job in virtual time, with the records of a run."""

import argparse
from pathlib import Path
from typing import Any

from emulator.commands.execution import add_execution_arguments, execute_job
from emulator.control.outcome import EngineRecords
from emulator.job import Job
from emulator.predict import predict
from emulator.progress import ProgressDisplay

__all__ = ["execute", "register"]

_EPILOG = """\
examples:
  rankwire predict loopback-clos
  rankwire predict clos-64 --profile moe-training --set ecn.preset=hpcc
  rankwire predict single-switch --trace traces/ --size-scale 0.01 --out runs/small
  rankwire predict incast-8 --json | jq .collectives
  rankwire predict clos-1024 --model fluid

The same job and seed give the same records, bit for bit."""


def register(subparsers: "argparse._SubParsersAction[argparse.ArgumentParser]") -> None:
    """Add the subcommand."""
    parser = subparsers.add_parser(
        "predict",
        help="what the job would do to the fabric, in virtual time",
        description="Run the job in virtual time: the same endpoints and switches as `run`, one "
        "process, no wires; the same records. With --model fluid, flows instead of packets.",
        epilog=_EPILOG,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    add_execution_arguments(parser)
    parser.add_argument(
        "--model",
        choices=("packets", "fluid"),
        default="packets",
        help="what moves over the links: packets (default), or flows that share them max-min "
        "fairly, for jobs that are too large for packets; see docs/fluid.md",
    )
    parser.set_defaults(execute=execute)


def execute(options: argparse.Namespace) -> int:
    """Predict and report."""
    return execute_job(options, "predict", _drive)


def _drive(
    job: Job, _directory: Path, display: ProgressDisplay
) -> tuple[EngineRecords, dict[str, Any]]:
    engine = predict(job, on_progress=display.update)
    return engine, {"events": engine.get("events")}

"""Arguments that several subcommands share, with the same meaning everywhere."""

import argparse

from emulator.commands.options import add_binding_options, positive_number

__all__ = ["add_job_arguments", "add_lab_arguments", "natural", "natural_float", "positive_int"]


def add_lab_arguments(parser: argparse.ArgumentParser) -> None:
    """LAB and --set."""
    parser.add_argument("lab", metavar="LAB", help="a lab file, or the name of a lab (lab list)")
    parser.add_argument(
        "--set",
        action="append",
        default=[],
        metavar="PATH=VALUE",
        help="change one key of the lab, for example ecn.kmin_bytes=400000 or "
        "dcqcn.rpg_ai_rate=20; may be repeated; `rankwire lab keys` lists the paths",
    )


def add_job_arguments(parser: argparse.ArgumentParser) -> None:
    """What decides the job: lab, traffic, scaling and seed."""
    add_lab_arguments(parser)
    source = parser.add_mutually_exclusive_group()
    source.add_argument(
        "--trace", metavar="DIR", help="Chakra execution traces, one file per rank: NAME.RANK.et"
    )
    source.add_argument(
        "--profile", metavar="NAME", help="a built-in job; by default the lab's default_profile"
    )
    add_binding_options(parser)
    parser.add_argument(
        "--iterations",
        type=positive_int,
        default=1,
        metavar="N",
        help="run the traces N times in a row (default 1)",
    )
    parser.add_argument(
        "--size-scale",
        type=positive_number,
        default=1.0,
        metavar="X",
        help="multiply every message size by X; recorded and shown in the report (default 1)",
    )
    parser.add_argument(
        "--compute-scale",
        type=natural_float,
        default=1.0,
        metavar="X",
        help="multiply compute durations by X; 0 leaves communication only (default 1)",
    )
    parser.add_argument(
        "--sample-interval",
        type=interval_ns,
        metavar="US",
        help="resolution of the time series in emulated microseconds "
        "(telemetry.sample_interval_ns); it doubles when telemetry.max_samples is reached",
    )
    parser.add_argument(
        "--seed", type=natural, default=1, metavar="N", help="seed of every random choice"
    )


def interval_ns(text: str) -> int:
    """Microseconds as whole nanoseconds, from 100 ns to 1000 s."""
    interval = round(1000 * positive_number(text))
    if not 100 <= interval <= 10**12:
        raise argparse.ArgumentTypeError(f"{text} is out of range; give 0.1 to 1000000000")
    return interval


def natural_float(text: str) -> float:
    """A finite number from 0."""
    return 0.0 if text.strip() in {"0", "0.0"} else positive_number(text)


def positive_int(text: str) -> int:
    """A whole number from 1."""
    value = natural(text)
    if value < 1:
        raise argparse.ArgumentTypeError(f"{text} is below 1; give a whole number from 1")
    return value


def natural(text: str) -> int:
    """A whole number from 0, below 2^63."""
    try:
        value = int(text)
    except ValueError:
        raise argparse.ArgumentTypeError(f"{text!r} is not a whole number") from None
    if not 0 <= value < 2**63:
        raise argparse.ArgumentTypeError(f"{text} is out of range; give 0 to 2^63 - 1")
    return value

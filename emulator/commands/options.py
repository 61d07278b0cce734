"""Options that several commands share."""

import argparse
from pathlib import Path

from traffic_profiles.binding_options import BindingOptions

__all__ = ["add_binding_options", "binding_options"]


def add_binding_options(parser: argparse.ArgumentParser) -> None:
    """Add the options that say how traces are bound into a workload."""
    group = parser.add_argument_group("trace binding")
    group.add_argument(
        "--group-file",
        type=Path,
        metavar="FILE",
        help="process groups as JSON: name -> global ranks ('//' comments allowed)",
    )
    group.add_argument(
        "--world-group",
        action="store_true",
        help="a process group that nothing declares is the whole world",
    )
    group.add_argument(
        "--idle",
        choices=("keep", "drop"),
        default="keep",
        help="idle time between CPU nodes, where the trace has timestamps (default: keep)",
    )
    group.add_argument(
        "--stream-order",
        choices=("on", "off"),
        default="on",
        help="run device kernels of one stream one after the other (default: on)",
    )
    group.add_argument(
        "--collective-order",
        choices=("communicator", "dependencies"),
        default="communicator",
        help="order of a group's collectives on a rank (default: communicator)",
    )
    group.add_argument(
        "--strict",
        action="store_true",
        help="dangling dependencies and duplicate node ids are errors",
    )
    group.add_argument(
        "--peak-flops",
        type=positive_number,
        metavar="FLOPS",
        help="device FLOP/s: gives compute nodes without a duration one (roofline)",
    )
    group.add_argument(
        "--memory-bandwidth",
        type=positive_number,
        metavar="BYTES_PER_S",
        help="device memory bytes/s, the other side of the roofline",
    )


def binding_options(args: argparse.Namespace) -> BindingOptions:
    """Binding options of parsed arguments."""
    return BindingOptions(
        group_file=args.group_file,
        world_group=args.world_group,
        idle=args.idle,
        stream_order=args.stream_order == "on",
        collective_order=args.collective_order,
        strict=args.strict,
        peak_flops=args.peak_flops,
        memory_bandwidth_bytes_per_s=args.memory_bandwidth,
    )


def positive_number(text: str) -> float:
    """Parse a number above zero, as argparse's `type`."""
    try:
        value = float(text)
    except ValueError:
        value = 0.0
    if not 0 < value < float("inf"):
        raise argparse.ArgumentTypeError(f"'{text}' is not a number above zero")
    return value

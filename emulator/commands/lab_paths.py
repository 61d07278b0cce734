"""`rankwire lab paths`: the equal-cost paths between two ranks, as links or as a drawing."""

import argparse
import json
from collections.abc import Sequence

from dataplane.errors import InputError, Problem
from emulator.commands.arguments import add_lab_arguments, natural
from emulator.commands.lab_drawing import add_options, draw
from emulator.job_config import job_config
from emulator.lab import LoadedLab, load

__all__ = ["register", "show_paths"]

_MOST_PATHS = 1024


def register(actions: "argparse._SubParsersAction[argparse.ArgumentParser]") -> None:
    """Add the action."""
    paths = actions.add_parser("paths", help="equal-cost paths between two ranks")
    add_lab_arguments(paths)
    paths.add_argument("source", metavar="FROM", type=natural, help="rank that sends")
    paths.add_argument("target", metavar="TO", type=natural, help="rank that receives")
    paths.add_argument("--json", action="store_true", help="print one JSON object")
    add_options(paths)


def show_paths(options: argparse.Namespace) -> None:
    """The links of every equal-cost path; which one a flow takes, the hash of its ports decides."""
    loaded = load(options.lab, options.set)
    ends = _nics(loaded, options)
    paths = loaded.fabric.paths(*ends, limit=_MOST_PATHS)
    if options.svg is not None:
        draw(loaded, options, highlight={name for path in paths for name in path})
    elif options.json:
        print(json.dumps(_document(loaded, options, paths)))
    else:
        for path in paths:
            print("  ".join(path))


def _nics(loaded: LoadedLab, options: argparse.Namespace) -> tuple[int, int]:
    """The NICs (indices) of both ranks."""
    nic_of = {
        nic["rank"]: index
        for index, nic in enumerate(job_config(loaded.lab, loaded.fabric, seed=1)["nics"])
    }
    problems = [
        Problem(f"rank {rank}", "is not in the lab", f"give 0 to {len(nic_of) - 1}")
        for rank in (options.source, options.target)
        if rank not in nic_of
    ]
    if options.source == options.target:
        problems.append(Problem(f"rank {options.source}", "is both ends", "give two ranks"))
    if problems:
        raise InputError(*problems)
    return nic_of[options.source], nic_of[options.target]


def _document(
    loaded: LoadedLab, options: argparse.Namespace, paths: Sequence[Sequence[str]]
) -> dict[str, object]:
    """The paths with what is the same for all of one: hops, delay, the slowest rate."""
    links = {link.name: link for link in loaded.fabric.links}
    return {
        "source_rank": options.source,
        "target_rank": options.target,
        "complete": len(paths) < _MOST_PATHS,
        "paths": [
            {
                "links": list(path),
                "delay_ns": sum(links[name].delay_ps for name in path) / 1000,
                "rate_bps": min(links[name].rate_bps for name in path),
            }
            for path in paths
        ],
    }

"""`rankwire lab show --svg`: the lab as a drawing, and where to go from there."""

import argparse
from collections.abc import Collection, Sequence
from pathlib import Path

from dataplane.errors import InputError, Problem
from emulator.job_config import job_config
from emulator.lab import LoadedLab
from metrics.drawing import draw_network

__all__ = ["add_options", "draw", "hints"]


def add_options(parser: argparse.ArgumentParser) -> None:
    """Add --svg and --theme."""
    parser.add_argument("--svg", metavar="FILE", help="draw as SVG into FILE instead; - is stdout")
    parser.add_argument(
        "--theme",
        choices=("auto", "light", "dark"),
        default="auto",
        help="colours of the drawing; auto follows the reader's system (default)",
    )


def draw(
    loaded: LoadedLab, options: argparse.Namespace, *, highlight: Collection[str] = ()
) -> None:
    """Draw the lab, links of these names stressed; a file that is there is replaced."""
    config = job_config(loaded.lab, loaded.fabric, seed=1)
    text = draw_network(config, title=loaded.lab.name, theme=options.theme, highlight=highlight)
    if options.svg == "-":
        print(text, end="")
        return
    try:
        Path(options.svg).write_text(text, encoding="utf-8")
    except OSError as error:
        what = f"can't be written: {error.strerror}"
        raise InputError(Problem(options.svg, what, "name a file that can be written")) from error


def hints(loaded: LoadedLab, name: str) -> Sequence[str]:
    """The commands that show what this one does not."""
    last = len(loaded.fabric.nics) - 1
    return (
        f"rankwire lab paths {name} 0 {last}  lists the paths between two ranks, --svg draws them",
        f"rankwire lab show {name} --svg FILE  draws the lab",
    )

"""`rankwire lab import` and `lab export`: other tools' topology files."""

import argparse
import sys
from pathlib import Path

from dataplane.errors import InputError, Problem
from emulator.commands.arguments import add_lab_arguments
from emulator.exchange import EXPORT_FORMATS, Images, export_lab, import_lab
from emulator.lab import load

__all__ = ["export_file", "import_file", "register"]

_IMPORT_EPILOG = """\
The binding file says what the topology file does not: ranks, addresses, ports, rates, delays, and
all other settings of a lab. docs/labs.md has its keys.

exit status: 0 the lab is written and nothing is wrong with it, 2 a file is wrong"""


def register(actions: "argparse._SubParsersAction[argparse.ArgumentParser]") -> None:
    """Add both actions."""
    importing = actions.add_parser(
        "import",
        help="a lab from a containerlab or InfraGraph file",
        description="Make a lab file from a containerlab topology or an InfraGraph infrastructure "
        "(YAML or JSON).",
        epilog=_IMPORT_EPILOG,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    importing.add_argument("file", type=Path, metavar="FILE", help="the topology file")
    importing.add_argument("--binding", type=Path, metavar="FILE", help="what the file lacks")
    _add_output(importing, "the lab file; by default it is printed")
    exporting = actions.add_parser(
        "export",
        help="a containerlab or InfraGraph file from a lab",
        description="Write a lab's nodes and links as a containerlab topology or an InfraGraph "
        "infrastructure.",
    )
    add_lab_arguments(exporting)
    exporting.add_argument("--format", choices=EXPORT_FORMATS, required=True)
    _add_output(exporting, "the topology file, JSON if it ends in .json; by default it is printed")
    exporting.add_argument(
        "--binding",
        type=Path,
        metavar="FILE",
        help="write what the format lacks there, for `lab import`",
    )
    exporting.add_argument(
        "--annotations",
        type=Path,
        metavar="FILE",
        help="of InfraGraph: write ranks and addresses there, for its `annotate_graph`",
    )
    images = Images()
    for option, default in (
        ("switch-kind", images.switch_kind),
        ("switch-image", images.switch_image),
        ("host-image", images.host_image),
    ):
        exporting.add_argument(
            f"--{option}",
            default=default,
            metavar="TEXT",
            help=f"of containerlab (default {default})",
        )


def _add_output(parser: argparse.ArgumentParser, help_text: str) -> None:
    parser.add_argument("--out", type=Path, metavar="FILE", help=help_text)
    parser.add_argument("--force", action="store_true", help="replace files that are there")


def import_file(options: argparse.Namespace) -> None:
    """Import, write, and say what was left out."""
    _refuse_existing(options, options.out)
    made = import_lab(options.file, options.binding)
    _deliver(options.out, made.text)
    fabric = made.fabric
    counts = f"{len(fabric.nics)} NICs, {len(fabric.switches)} switches, {len(fabric.links)} links"
    for line in (*made.notes, counts):
        print(f"rankwire: {line}", file=sys.stderr)


def export_file(options: argparse.Namespace) -> None:
    """Export, and write the binding if it is wanted."""
    _refuse_existing(options, options.out, options.binding, options.annotations)
    if options.annotations is not None and options.format != "infragraph":
        what = f"are InfraGraph's, and the format is {options.format}"
        raise InputError(Problem("--annotations", what, "leave them out"))
    loaded = load(options.lab, options.set)
    images = Images(options.switch_kind, options.switch_image, options.host_image)
    as_json = options.out is not None and options.out.suffix == ".json"
    made = export_lab(loaded, options.format, images=images, as_json=as_json)
    _deliver(options.out, made.text)
    if options.binding is not None:
        _deliver(options.binding, made.binding_text)
    if options.annotations is not None:
        _deliver(options.annotations, made.annotation_text)


def _refuse_existing(options: argparse.Namespace, *paths: Path | None) -> None:
    there = [path for path in paths if path is not None and path.exists() and not options.force]
    if there:
        what, remedy = "is there already", "name another file, or replace it with --force"
        raise InputError(*(Problem(str(path), what, remedy) for path in there))


def _deliver(path: Path | None, text: str) -> None:
    if path is None:
        print(text, end="")
        return
    try:
        path.write_text(text, encoding="utf-8")
    except OSError as error:
        what = f"can't be written: {error.strerror}"
        raise InputError(Problem(str(path), what, "name a file that can be written")) from error

"""`rankwire lab up`, `down`, `link` and `status`: labs of network namespaces on this machine."""

import argparse
import importlib

from emulator.commands.arguments import add_lab_arguments

__all__ = ["ACTIONS", "EXAMPLES", "add_actions"]

EXAMPLES = """\
  rankwire lab up netns-clos                build a lab of network namespaces here (root)
  rankwire lab status netns-clos            what its ports have counted
  rankwire lab link netns-clos leaf0-spine0.0 down     pull a cable (root)
  rankwire lab down netns-clos              remove it again"""


def add_actions(actions: "argparse._SubParsersAction[argparse.ArgumentParser]") -> None:
    """Add the three actions to `rankwire lab`."""
    up = actions.add_parser("up", help="build a lab of network namespaces on this machine (root)")
    add_lab_arguments(up)
    up.add_argument("--quiet", action="store_true", help="no progress")
    down = actions.add_parser("down", help="remove what `lab up` has made, and nothing else")
    add_lab_arguments(down)
    link = actions.add_parser("link", help="pull a link of a lab that is up, or plug it in again")
    add_lab_arguments(link)
    link.add_argument("link", metavar="LINK", help="its name, as in `lab status`")
    link.add_argument("state", choices=("up", "down"))
    link.add_argument(
        "--keep-routes",
        action="store_true",
        help="only the two ends learn of it; without this, routing converges at once",
    )
    status = actions.add_parser("status", help="labs that are up, or the counters of one")
    status.add_argument("lab", nargs="?", metavar="LAB", help="a lab file or name; default: all")
    status.add_argument("--set", action="append", default=[], metavar="PATH=VALUE")
    status.add_argument("--json", action="store_true", help="print one JSON object")


def _execute(options: argparse.Namespace) -> None:
    actions = importlib.import_module("emulator.commands.namespace_actions")
    actions.ACTIONS[options.action](options)


ACTIONS = dict.fromkeys(("up", "down", "link", "status"), _execute)
"""Name -> what carries it out."""

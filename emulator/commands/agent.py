"""`rankwire agent`: carry nodes of a lab for controllers that ask over MQTT."""

import argparse
import asyncio
import logging
from pathlib import Path
from typing import Any

__all__ = ["execute", "register"]


def register(subparsers: "argparse._SubParsersAction[Any]") -> None:
    """Add the command to the parser."""
    parser = subparsers.add_parser(
        "agent",
        help="carry nodes of a lab for controllers that ask over MQTT",
        description="Carry NICs and switches of a lab for controllers that ask over MQTT. What the "
        "agent may do stands in its file alone: docs/control.md.",
    )
    parser.add_argument(
        "--config", type=Path, required=True, metavar="FILE", help="the agent's YAML file"
    )
    parser.set_defaults(execute=execute)


def execute(arguments: argparse.Namespace) -> int:
    """Serve until told to end; returns the exit status."""
    # An agent that only prints its help need not load the engine.
    from emulator.control.agent import serve  # noqa: PLC0415
    from emulator.control.agent_config import read_agent_config  # noqa: PLC0415

    logging.basicConfig(level=logging.WARNING, format="%(levelname)s %(name)s: %(message)s")
    return asyncio.run(serve(read_agent_config(arguments.config)))

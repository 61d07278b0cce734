"""Captures: which links are kept, and the pcapng file that the kept frames become.

The engine keeps frames as they reach the end of their link, with emulated times; nothing here knows
what is in them.
"""

from collections.abc import Iterator, Mapping, Sequence
from fnmatch import fnmatchcase
from pathlib import Path
from typing import Any

import numpy as np

import dataplane
from dataplane.errors import InputError, Problem
from emulator.lab.fabric import Fabric

__all__ = ["CAPTURE_FILE", "capture_config", "capture_line", "write_capture"]

CAPTURE_FILE = "capture.pcapng"
"""Name of the file in the directory of a run."""


def capture_config(links: Sequence[str], max_packets: int, fabric: Fabric) -> dict[str, Any] | None:
    """The engine's `capture` for globs of links or of their ends (`LINK/0`, `LINK/1`).

    An end stands for the frames that leave it. Raises `InputError` for globs without a match.
    """
    if not links:
        return None
    ends = list(_ends(fabric))
    problems = [_unmatched(glob, ends) for glob in links if not _matching(glob, ends)]
    if problems:
        raise InputError(*problems)
    directions = sorted({direction for glob in links for direction in _matching(glob, ends)})
    return {"directions": directions, "max_packets": max_packets}


def write_capture(
    directory: Path, config: Mapping[str, Any], engine: Mapping[str, Any]
) -> dict[str, Any]:
    """Write what the engine kept; returns what `run.json` tells of it, empty without a capture.

    The file has one interface per captured end, and the earliest frames of all up to the limit.
    """
    capture, frames = config.get("capture"), engine.get("capture")
    if capture is None or frames is None:
        return {}
    directions = list(capture["directions"])
    names = [link["name"] for link in config["links"]]
    index = {direction: position for position, direction in enumerate(directions)}
    written = dataplane.write_capture(
        directory / CAPTURE_FILE,
        [f"{names[direction // 2]}/{direction % 2}" for direction in directions],
        time_ps=frames["time_ps"],
        interface=_lookup(index, frames["direction"]),
        length_bytes=frames["length_bytes"],
        frames=engine["capture_bytes"]["bytes"],
        max_packets=capture["max_packets"],
    )
    left_out = sum(engine["counters"]["capture"]["left_out"].tolist())
    left_out += len(frames["time_ps"]) - written
    facts = {"file": CAPTURE_FILE, "packets": written, "left_out": left_out}
    return {"capture": facts}


def capture_line(facts: Mapping[str, Any], directory: Path) -> str:
    """What the user is told about a capture."""
    line = f"capture: {directory / facts['file']}, {facts['packets']} packets"
    if facts["left_out"]:
        line += f"; {facts['left_out']} later ones are left out, see --capture-packets"
    return line


def _lookup(index: Mapping[int, int], directions: Any) -> Any:
    """Positions of directions, uint32[frames]."""
    table = np.zeros(max(index) + 1, np.uint32)
    table[list(index)] = list(index.values())
    return table[directions]


def _ends(fabric: Fabric) -> Iterator[tuple[str, str]]:
    for link in fabric.links:
        yield link.name, f"{link.name}/0"
        yield link.name, f"{link.name}/1"


def _matching(glob: str, ends: Sequence[tuple[str, str]]) -> list[int]:
    """Directions whose link or whose end matches."""
    return [
        direction
        for direction, names in enumerate(ends)
        if any(fnmatchcase(name, glob) for name in names)
    ]


def _unmatched(glob: str, ends: Sequence[tuple[str, str]]) -> Problem:
    some = ", ".join(dict.fromkeys(link for link, _ in ends[:6]))
    return Problem("--capture", f"{glob}: no link has this name", f"name links, as {some}")

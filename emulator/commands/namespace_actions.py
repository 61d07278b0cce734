"""What `rankwire lab up`, `down`, `link` and `status` do.

Imported only for them: pyroute2 takes time.
"""

import argparse
import json
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import asdict
from pathlib import Path
from typing import Any

from rich.console import Console
from rich.progress import BarColumn, Progress, TextColumn
from rich.table import Table

from dataplane.errors import RunError
from emulator.lab import load
from emulator.namespaces import (
    LabState,
    Layout,
    PortCounters,
    bring_up,
    counters,
    lay_out,
    links_down,
    occupants,
    read_all,
    set_link,
    take_down,
)
from emulator.namespaces.making import OnStep
from emulator.terminal import print_lines, print_table

__all__ = ["ACTIONS"]


def _up(options: argparse.Namespace) -> None:
    layout = lay_out(load(options.lab, options.set))
    started_s = time.monotonic()
    with _progress(f"lab {layout.lab}", quiet=options.quiet) as on_step:
        is_new = bring_up(layout, on_step)
    took = f"; took {time.monotonic() - started_s:.1f} s" if is_new else ""
    print(f"{layout.lab} is up{'' if is_new else ' already'}: {_counts(layout)}{took}")
    if is_new:
        first = next(iter(layout.hosts.values()))
        print(f"its namespaces have names: ip netns exec {first.namespace} COMMAND")


def _down(options: argparse.Namespace) -> None:
    lab = _name_of(options)
    removal = take_down(lab)
    if removal is None:
        print(f"{lab} is not up")
        return
    for name in removal.foreign:
        print(f"rankwire: {name} is not of this lab any more: left alone", file=sys.stderr)
    print(f"{lab} is down: {removal.namespaces} namespaces removed")
    if not removal.is_complete:
        raise RunError(
            f"lab {lab}: the kernel still holds something of it: a process elsewhere may have "
            "sockets inside; it goes when they are closed"
        )


def _status(options: argparse.Namespace) -> None:
    if options.lab is None:
        _show_all(read_all(), as_json=options.json)
        return
    layout = lay_out(load(options.lab, options.set))
    ports = counters(layout)
    if options.json:
        print(json.dumps({"lab": layout.lab, "ports": [asdict(port) for port in ports]}))
        return
    print_lines(f"{layout.lab} is up: {_counts(layout)}")
    print_table(_port_table(ports))


def _link(options: argparse.Namespace) -> None:
    loaded = load(options.lab, options.set)
    set_link(loaded, options.link, is_up=options.state == "up", reroutes=not options.keep_routes)
    down = sorted(links_down(lay_out(loaded)))
    print(f"{options.link} is {options.state}; down: {', '.join(down) or 'none'}")


ACTIONS: dict[str, Callable[[argparse.Namespace], None]] = {
    "up": _up,
    "down": _down,
    "link": _link,
    "status": _status,
}
"""Name -> what it does."""


def _name_of(options: argparse.Namespace) -> str:
    """The lab's name: of a lab that is up, also when its file is gone, or by its file."""
    given: str = options.lab
    if not options.set and not Path(given).is_file() and given in {s.lab for s in read_all()}:
        return given
    return load(given, options.set).lab.name


def _counts(layout: Layout) -> str:
    switches = sum(node.is_switch for node in layout.nodes)
    return f"{len(layout.hosts)} hosts, {switches} switches, {len(layout.links)} links"


def _show_all(states: list[LabState], *, as_json: bool) -> None:
    rows = [
        {
            "lab": state.lab,
            "state": state.phase if state.is_of_this_boot else "ended with the last boot",
            "namespaces": len(state.namespaces),
            "processes": len(occupants(state)),
        }
        for state in states
    ]
    if as_json:
        print(json.dumps({"labs": rows}))
        return
    if not rows:
        print("no lab is up")
        return
    table = Table("lab", "state", "namespaces", "processes inside", box=None)
    for row in rows:
        table.add_row(*(str(value) for value in row.values()))
    print_table(table)


def _port_table(ports: tuple[PortCounters, ...]) -> Table:
    names = ("sent bytes", "sent", "received", "dropped", "waited", "capable", "marked")
    table = Table("node", "port", "link", "state", *names, box=None)
    for name in names:
        next(column for column in table.columns if column.header == name).justify = "right"
    for port in ports:
        marking: Any = port.marking
        dropped = port.tx_dropped_packets + port.queue_dropped_packets
        marks = ("", "")
        if marking is not None:
            dropped += marking.dropped_packets
            marks = (f"{marking.capable_packets:,}", f"{marking.marked_packets:,}")
        numbers = (port.tx_bytes, port.tx_packets, port.rx_packets, dropped, port.overlimits)
        shown = (f"{number:,}" for number in numbers)
        state = "up" if port.is_up else "down"
        table.add_row(port.node, str(port.port), port.link, state, *shown, *marks)
    return table


@contextmanager
def _progress(title: str, *, quiet: bool) -> Iterator[OnStep]:
    """A bar on a terminal, nothing elsewhere: it takes seconds."""
    console = Console(stderr=True, file=sys.stderr)
    if quiet or not console.is_terminal:
        yield lambda *_: None
        return
    columns = (TextColumn("[bold]{task.description}"), BarColumn(bar_width=20))
    counts = TextColumn("{task.completed:.0f}/{task.total:.0f}")
    with Progress(*columns, counts, console=console, transient=True) as bar:
        task = bar.add_task(title, total=1)

        def on_step(what: str, done: int, total: int) -> None:
            bar.update(task, description=f"{title}: {what}", completed=done, total=total)

        yield on_step

"""What every topology file comes to: nodes with ports, and links between ports.

Nothing here knows a file format or a lab.
"""

import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Literal

from emulator.lab.documents import KeyPath

__all__ = ["Graph", "GraphEnd", "GraphLink", "GraphNode", "Role", "natural", "plain_name"]

Role = Literal["host", "switch", "ignored"]
"""Hosts have NICs, switches forward, ignored nodes and their links are left out."""


@dataclass(frozen=True, slots=True)
class GraphEnd:
    """One end of a link."""

    node: str
    """Name in the file."""
    port: str
    """Interface or port, as the file has it."""


@dataclass(frozen=True, slots=True)
class GraphNode:
    """A host or switch as the file has it."""

    name: str
    role: Role
    """What it is taken for unless a binding says otherwise."""
    path: KeyPath
    """Where the file declares it."""
    lab_name: str
    """What a lab calls it."""
    kind: str = ""
    """Kind of node or device."""
    group: str = ""
    ports: tuple[str, ...] = ()
    """Every port in order, if the file says; empty: those that links use."""
    management_address: str | None = None


@dataclass(frozen=True, slots=True)
class GraphLink:
    """One link; what the file does not say is `None`."""

    a: GraphEnd
    b: GraphEnd
    path: KeyPath
    name: str = ""
    """Name of the kind of link."""
    rate_gbps: float | None = None
    delay_ns: int | None = None


@dataclass(slots=True)
class Graph:
    """A topology file, read."""

    name: str
    separator: str
    """Between node and port where both are written as one word."""
    keeps_port_names: bool
    """Its ports have names rather than numbers."""
    nodes: dict[str, GraphNode] = field(default_factory=dict)
    links: list[GraphLink] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)
    """What was left out, one sentence each."""

    def label(self, end: GraphEnd) -> str:
        """An end as one word: `leaf1:eth3`, `leaf.1.port.3`."""
        return f"{end.node}{self.separator}{end.port}"

    def ends(self) -> Iterator[GraphEnd]:
        """Every end of every link."""
        for link in self.links:
            yield link.a
            yield link.b


def natural(text: str) -> list[tuple[int, str]]:
    """A key that sorts numbers within names by value."""
    return [(int(part), "") if part.isdigit() else (-1, part) for part in _parts(text)]


def _parts(text: str) -> list[str]:
    return [part for part in re.split(r"([0-9]+)", text) if part]


def plain_name(text: str) -> str:
    """The text as a lab may name a node: other characters become dashes."""
    name = re.sub(r"[^A-Za-z0-9_.-]+", "-", text).strip("-._")[:63]
    return name or "node"

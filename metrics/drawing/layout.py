"""Where everything stands: boxes of switches in rows, NICs below, links bundled between boxes.

A large network is drawn with fewer boxes: neighbours in a row share one.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass, field
from itertools import pairwise

from metrics.drawing.network import Link, Network, tiers

__all__ = ["CELL", "Box", "Bundle", "Layout", "arrange"]

MOST_BOXES = 32
"""Boxes in one row of one switch each."""
FEWER_BOXES = 16
"""Boxes in one row at most if there are more switches: several share a box."""
MOST_NIC_BOXES = 16
"""NICs that have a box each; more are cells in a grid."""
CELL = 13
"""Side of a NIC's cell, px, with the gap to the next."""

_GUTTER, _MARGIN, _TOP = 176, 20, 78
_BOX_HEIGHT, _NIC_HEIGHT, _GAP = 30, 40, 14
_LETTER, _SMALL_LETTER = 7.4, 6.6
_RANKS_WIDTH = 82
_ARC_RISE = 52


@dataclass(slots=True)
class Box:
    """One switch, several that share a box, or one NIC."""

    nodes: list[int]
    label: str
    tier: int
    """0 for NICs, 1 for the switches next to them, and so on."""
    width: float
    height: float
    x: float = 0.0
    """Left edge."""
    y: float = 0.0
    """Upper edge."""
    cells: list[int] = field(default_factory=list)
    """NICs drawn as cells below it."""

    @property
    def middle(self) -> float:
        """Horizontal middle."""
        return self.x + self.width / 2

    @property
    def columns(self) -> int:
        """Columns of the cells."""
        return max(1, min(len(self.cells), max(4, math.ceil(math.sqrt(len(self.cells))))))

    @property
    def span(self) -> float:
        """Width with the cells and the line of text below them."""
        return max(self.width, self.columns * CELL, _RANKS_WIDTH if self.cells else 0.0)


@dataclass(slots=True)
class Bundle:
    """The links between two boxes, each with whether it points from the first to the second."""

    a: Box
    b: Box
    links: list[tuple[Link, bool]] = field(default_factory=list)
    bend: float = 0.0
    """How far the line's control point is above its ends, px; 0 is a straight line."""


@dataclass(frozen=True, slots=True)
class Layout:
    """The picture's geometry, px."""

    width: float
    height: float
    rows: Sequence[Sequence[Box]]
    """Boxes by tier; row 0 holds NICs with boxes of their own."""
    bundles: Sequence[Bundle]
    cell_links: dict[int, tuple[Link, bool]]
    """NIC drawn as a cell -> its link, and whether it points away from the NIC."""
    gutter: float = _GUTTER


def arrange(network: Network) -> Layout:
    """The layout of a network."""
    rows = [_switch_row(network, tier, row) for row, tier in enumerate(tiers(network), 1)]
    home = {node: box for row in rows for box in row for node in box.nodes}
    attached = _attachment(network)
    cells = len(network.nics) > MOST_NIC_BOXES
    nic_row = []
    for nic, item in enumerate(network.nics):
        box = home.get(attached.get(nic, -1))
        if cells and box is not None:
            box.cells.append(nic)
        else:
            width = max(60.0, len(item.name) * _SMALL_LETTER + 12)
            nic_row.append(Box([nic], item.name, 0, width, _NIC_HEIGHT))
    home |= {box.nodes[0]: box for box in nic_row}
    bundles, cell_links = _bundles(network, home)
    _order_rows(rows, bundles)
    nic_row.sort(key=lambda box: _position(box, rows, home, attached))
    width = _place_across([nic_row, *rows], home, attached)
    top_arcs = _bend_arcs([nic_row, *rows], bundles)
    height = _place_down([nic_row, *rows], _TOP + (_ARC_RISE - 16 if top_arcs else 0))
    return Layout(width, height, [nic_row, *rows], bundles, cell_links)


def _switch_row(network: Network, switches: Sequence[int], tier: int) -> list[Box]:
    share = 1 if len(switches) <= MOST_BOXES else math.ceil(len(switches) / FEWER_BOXES)
    groups = [list(switches[i : i + share]) for i in range(0, len(switches), share)]
    row = []
    for nodes in groups:
        label = network.name(nodes[0])
        if len(nodes) > 1:
            label = f"{label} to {network.name(nodes[-1])}"
        row.append(Box(nodes, label, tier, max(56.0, len(label) * _LETTER + 16), _BOX_HEIGHT))
    return row


def _attachment(network: Network) -> dict[int, int]:
    """NIC -> the switch that its link ends in."""
    found: dict[int, int] = {}
    for link in network.links:
        for nic, other in ((link.a, link.b), (link.b, link.a)):
            if not network.is_switch(nic) and network.is_switch(other):
                found.setdefault(nic, other)
    return found


def _bundles(
    network: Network, home: dict[int, Box]
) -> tuple[list[Bundle], dict[int, tuple[Link, bool]]]:
    """Links by the boxes they join, the lower tier first; those of cells apart."""
    bundles: dict[tuple[int, int], Bundle] = {}
    cell_links: dict[int, tuple[Link, bool]] = {}
    for link in network.links:
        for nic, forward in ((link.a, True), (link.b, False)):
            if nic not in home:
                cell_links[nic] = (link, forward)
        if link.a not in home or link.b not in home:
            continue
        a, b = home[link.a], home[link.b]
        if a is b:
            continue
        forward = (a.tier, a.nodes[0]) <= (b.tier, b.nodes[0])
        first, second = (a, b) if forward else (b, a)
        bundle = bundles.setdefault((id(first), id(second)), Bundle(first, second))
        bundle.links.append((link, forward))
    return list(bundles.values()), cell_links


def _order_rows(rows: list[list[Box]], bundles: Sequence[Bundle]) -> None:
    """Boxes of upper rows stand near what they are linked to below."""
    below: dict[int, list[Box]] = {}
    for bundle in bundles:
        if 0 < bundle.a.tier < bundle.b.tier:
            below.setdefault(id(bundle.b), []).append(bundle.a)
    for lower, row in pairwise(rows):
        place = {id(box): index for index, box in enumerate(lower)}

        def middle(box: Box, place: dict[int, int] = place) -> float:
            its = [place[id(other)] for other in below.get(id(box), ()) if id(other) in place]
            return sum(its) / len(its) if its else 0.0

        row.sort(key=middle)


def _position(
    box: Box, rows: Sequence[Sequence[Box]], home: dict[int, Box], attached: dict[int, int]
) -> tuple[int, int]:
    """Order of a NIC's box: that of its switch, then its own."""
    own = home.get(attached.get(box.nodes[0], -1))
    first = list(rows[0]) if rows else []
    place = next((index for index, other in enumerate(first) if other is own), len(first))
    return place, box.nodes[0]


def _place_across(
    rows: Sequence[Sequence[Box]], home: dict[int, Box], attached: dict[int, int]
) -> float:
    """Set every `x`, and return the width of the picture."""
    nic_row, *switch_rows = rows
    below: dict[int, list[Box]] = {}
    lone = []
    for nic in nic_row:
        owner = home.get(attached.get(nic.nodes[0], -1))
        if owner is None:
            lone.append(nic)
        else:
            below.setdefault(id(owner), []).append(nic)
    spans = {
        id(box): max(box.span, _total(below.get(id(box), ())))
        for row in (*switch_rows, lone)
        for box in row
    }
    inner = max(520.0, *(sum(spans[id(box)] + _GAP for box in row) for row in (*switch_rows, lone)))
    for row in (*switch_rows, lone):
        _spread(row, spans, inner)
    for box in (box for row in switch_rows for box in row):
        _spread_below(box, below.get(id(box), ()))
    return _GUTTER + inner + _MARGIN


def _total(boxes: Sequence[Box]) -> float:
    """Width of NICs side by side."""
    return sum(box.width + _GAP / 2 for box in boxes)


def _spread(row: Sequence[Box], spans: dict[int, float], inner: float) -> None:
    """Boxes over the whole width, with equal gaps between what each needs."""
    if not row:
        return
    gap = (inner - sum(spans[id(box)] for box in row)) / len(row)
    x = _GUTTER + gap / 2
    for box in row:
        box.x = x + (spans[id(box)] - box.width) / 2
        x += spans[id(box)] + gap


def _spread_below(owner: Box, boxes: Sequence[Box]) -> None:
    x = owner.middle - (_total(boxes) - _GAP / 2) / 2
    for box in boxes:
        box.x = x
        x += box.width + _GAP / 2


def _bend_arcs(rows: Sequence[Sequence[Box]], bundles: Sequence[Bundle]) -> bool:
    """Bend lines within a row over the boxes between; whether the top row has such a line."""
    place = {id(box): index for row in rows for index, box in enumerate(row)}
    top = max((row[0].tier for row in rows if row), default=0)
    for bundle in bundles:
        apart = abs(place[id(bundle.a)] - place[id(bundle.b)])
        if bundle.a.tier == bundle.b.tier and apart > 1:
            reach = abs(bundle.a.middle - bundle.b.middle)
            bundle.bend = min(2.0 * _ARC_RISE, 30 + 0.12 * reach)
    return any(bundle.bend and bundle.a.tier == top for bundle in bundles)


def _place_down(rows: Sequence[Sequence[Box]], top: float) -> float:
    """Set every `y`, top row first, and return the height of what is drawn so far."""
    y = float(top)
    most = max(len(row) for row in rows)
    between = min(230.0, 96.0 + 5.0 * most)
    for row in reversed(rows[1:]):
        for box in row:
            box.y = y
        y += _BOX_HEIGHT + (between if row is not rows[1] else 0)
    if rows[0]:
        y += 70 if len(rows) > 1 and rows[1] else 40
        for box in rows[0]:
            box.y = y
        y += _NIC_HEIGHT
    cells = [box for row in rows[1:] for box in row if box.cells]
    lines = max((math.ceil(len(box.cells) / box.columns) for box in cells), default=0)
    return y + (lines * CELL + 34 if lines else 0)

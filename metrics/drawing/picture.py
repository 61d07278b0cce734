"""Writes the SVG of a layout."""

import html
import math
from collections.abc import Collection, Iterator, Mapping, Sequence
from typing import Any

from metrics.drawing import words
from metrics.drawing.elements import element, number, text_at
from metrics.drawing.layout import CELL, Box, Bundle, Layout, arrange
from metrics.drawing.lines import ends, halves, point, xy
from metrics.drawing.network import Network, Utilisation, network_of
from metrics.drawing.scale import STEPS, colour_at, scale_end
from metrics.drawing.style import Theme, style_sheet

__all__ = ["draw_network"]

_MOST_LABELS = 12
"""Bundles between two tiers that have labels of their own, if their rates differ."""
_LABEL_WIDTH = 84
_MOST_SEPARATE_NICS = 1024
"""NICs whose squares can be pointed at one by one."""
_MOST_SEPARATE = 160
"""Bundles that can be pointed at one by one; more are drawn as one path per colour."""


def draw_network(
    config: Mapping[str, Any],
    *,
    title: str,
    utilisation: Utilisation | None = None,
    highlight: Collection[str] = (),
    theme: Theme = "auto",
) -> str:
    """The network of a job configuration as an SVG document.

    `utilisation` colours every link by the share of the run in which it was occupied, each
    direction at the end that sends; without it links are plain, those named in `highlight`
    stressed.
    """
    network = network_of(config)
    picture = _Picture(network, arrange(network), utilisation, highlight)
    return picture.document(title, theme)


class _Picture:
    """One drawing under construction."""

    def __init__(
        self,
        network: Network,
        layout: Layout,
        utilisation: Utilisation | None,
        highlight: Collection[str],
    ) -> None:
        self.network = network
        self.layout = layout
        self.utilisation = utilisation
        self.highlight = highlight
        self.scale_end = scale_end(max(utilisation.values())) if utilisation else 1.0
        self.widest_bps = max((_rate(bundle) for bundle in layout.bundles), default=1)

    def document(self, title: str, theme: Theme) -> str:
        layout, network = self.layout, self.network
        height = layout.height + 66
        counts = ", ".join(
            (
                words.counted(len(network.nics), "NIC"),
                words.counted(len(network.switches), "switch"),
                words.counted(len(network.links), "link"),
            )
        )
        body = [
            element("rect", class_="page", width=layout.width, height=height),
            text_at(20, 32, title, "start title"),
            text_at(20, 51, counts, "start muted"),
            *self._links(),
            *self._boxes(),
            *self._gutter(),
            *self._legend(height - 24),
        ]
        words_for_all = words.description(network, layout, self.utilisation)
        head = (
            f'<svg xmlns="http://www.w3.org/2000/svg" class="rw" role="img" '
            f'viewBox="0 0 {number(layout.width)} {number(height)}" '
            f'width="{number(layout.width)}" height="{number(height)}" '
            f'aria-labelledby="rw-title rw-desc">'
        )
        named = [
            element("title", html.escape(title), id="rw-title"),
            element("desc", html.escape(words_for_all), id="rw-desc"),
            element("style", style_sheet(theme)),
        ]
        return "\n".join([head, *named, *body, "</svg>\n"])

    def _shares(self, bundle: Bundle) -> tuple[float, float] | None:
        """Mean utilisation of a bundle, from its first box and from its second."""
        if self.utilisation is None:
            return None
        sums = [0.0, 0.0]
        for link, forward in bundle.links:
            for direction in (0, 1):
                side = direction if forward else 1 - direction
                sums[side] += self.utilisation.get((link.name, direction), 0.0)
        return sums[0] / len(bundle.links), sums[1] / len(bundle.links)

    def _links(self) -> Iterator[str]:
        """Lines, the busiest last and so on top."""
        drawn = [(bundle, self._shares(bundle)) for bundle in self.layout.bundles]
        drawn.sort(key=lambda item: (self._is_stressed(item[0]), max(item[1] or (0.0,))))
        if len(drawn) <= _MOST_SEPARATE:
            yield from (self._line(bundle, shares) for bundle, shares in drawn)
        else:
            yield from self._joined_lines(drawn)
        yield from self._link_labels()

    def _line(self, bundle: Bundle, shares: tuple[float, float] | None) -> str:
        """One line of two halves that can be pointed at."""
        name = element("title", html.escape(words.bundle_text(bundle, shares)))
        width = self._stroke_width(bundle)
        class_ = "hot" if self._is_stressed(bundle) else "link"
        parts = [
            element("path", **_stroke(colour, class_), d=half, stroke_width=width)
            for colour, half in zip(self._colours(shares), halves(bundle), strict=True)
        ]
        return element("g", name + "".join(parts))

    def _colours(self, shares: tuple[float, float] | None) -> tuple[str, str]:
        """Colours of both halves; empty for the theme's own."""
        if shares is None:
            return "", ""
        return colour_at(shares[0] / self.scale_end), colour_at(shares[1] / self.scale_end)

    def _is_stressed(self, bundle: Bundle) -> bool:
        return any(link.name in self.highlight for link, _ in bundle.links)

    def _joined_lines(
        self, drawn: Sequence[tuple[Bundle, tuple[float, float] | None]]
    ) -> Iterator[str]:
        """All lines of one colour and width as one path: many lines stay a small file."""
        paths: dict[tuple[float, float], list[str]] = {}
        for bundle, shares in drawn:
            width = self._stroke_width(bundle)
            plain = (2.0, 2.0) if self._is_stressed(bundle) else (-1.0, -1.0)
            both = plain if shares is None else [share / self.scale_end for share in shares]
            for part, half in zip(both, halves(bundle), strict=True):
                paths.setdefault((round(part * STEPS) / STEPS, width), []).append(half)
        for (share, width), parts in sorted(paths.items()):
            colour = colour_at(share) if 0 <= share <= 1 else ""
            stroke = _stroke(colour, "hot" if share > 1 else "link")
            opacity = 0.85 if share > 0 else 0.45
            yield element("path", **stroke, d=" ".join(parts), stroke_width=width, opacity=opacity)

    def _stroke_width(self, bundle: Bundle) -> float:
        count = len(self.layout.bundles)
        widest = 4.5 if count <= 64 else 1.6 if count <= 400 else 0.9
        return round(max(0.5, widest * math.sqrt(_rate(bundle) / self.widest_bps)), 2)

    def _link_labels(self) -> Iterator[str]:
        """Labels of the bundles themselves, where the tier's own would not say it all."""
        tiers: dict[tuple[int, int], list[Bundle]] = {}
        for bundle in self.layout.bundles:
            tiers.setdefault((bundle.a.tier, bundle.b.tier), []).append(bundle)
        for (lower, upper), bundles in tiers.items():
            texts = {words.link_label(bundle) for bundle in bundles}
            if len(bundles) <= _MOST_LABELS and (len(texts) > 1 or lower == upper):
                yield from (_label(bundle) for bundle in bundles)

    def _boxes(self) -> Iterator[str]:
        for row in self.layout.rows:
            for box in row:
                kind = "switch" if box.tier else "nic"
                yield element(
                    "rect", class_=kind, x=box.x, y=box.y, width=box.width, height=box.height, rx=5
                )
                yield from self._box_text(box)
                yield from self._cells(box)

    def _box_text(self, box: Box) -> Iterator[str]:
        middle = box.y + box.height / 2
        if box.tier:
            yield text_at(box.middle, middle + 4, box.label)
            return
        yield text_at(box.middle, middle - 3, box.label, "small")
        rank = self.network.nics[box.nodes[0]].rank
        yield text_at(box.middle, middle + 12, f"rank {rank}", "small muted")

    def _cells(self, box: Box) -> Iterator[str]:
        if not box.cells:
            return
        text = words.ranks_text(self.network, box.cells)
        top = box.y + box.height + 8
        left = box.middle - box.columns * CELL / 2
        places = {
            nic: (left + index % box.columns * CELL, top + index // box.columns * CELL)
            for index, nic in enumerate(box.cells)
        }
        if len(self.network.nics) <= _MOST_SEPARATE_NICS:
            yield from (self._cell(nic, *place) for nic, place in places.items())
        else:
            yield from self._joined_cells(places)
        lines = -(-len(box.cells) // box.columns)
        yield text_at(box.middle, top + lines * CELL + 12, text, "small muted")

    def _joined_cells(self, places: Mapping[int, tuple[float, float]]) -> Iterator[str]:
        """The halves of one colour as one path."""
        paths: dict[str, list[str]] = {}
        side = CELL - 2
        for nic, (x, y) in places.items():
            for part, colour in enumerate(self._colours(self._nic_shares(nic))):
                corner = xy(x + part * side / 2, y)
                paths.setdefault(colour, []).append(f"M{corner}h{side / 2}v{side}h-{side / 2}z")
        for colour, parts in sorted(paths.items()):
            yield element("path", **_fill(colour), d=" ".join(parts))

    def _cell(self, nic: int, x: float, y: float) -> str:
        """A NIC as a small square: its left half what it sends, its right half what it receives."""
        item = self.network.nics[nic]
        shares = self._nic_shares(nic)
        text = f"{item.name}, rank {item.rank}{words.shares_text(shares, 'sent', 'the fabric')}"
        side = CELL - 2
        link, _ = self.layout.cell_links[nic]
        class_ = "hot-cell" if link.name in self.highlight else "cell"
        halves = [
            element("rect", **_fill(colour, class_), x=x + part * side / 2, y=y, width=side / 2,
                     height=side)
            for part, colour in enumerate(self._colours(shares))
        ]  # fmt: skip
        return element("g", element("title", html.escape(text)) + "".join(halves))

    def _nic_shares(self, nic: int) -> tuple[float, float] | None:
        """What a NIC sends and receives, as shares of the time."""
        if self.utilisation is None:
            return None
        link, forward = self.layout.cell_links[nic]
        both = [self.utilisation.get((link.name, direction), 0.0) for direction in (0, 1)]
        return (both[0], both[1]) if forward else (both[1], both[0])

    def _gutter(self) -> Iterator[str]:
        """Names of the tiers on the left, and the links between them."""
        rows = self.layout.rows
        for tier, row in enumerate(rows):
            if not row:
                continue
            y = row[0].y + row[0].height / 2
            text = words.tier_text(self.network, row) if tier else ""
            if text:
                yield text_at(20, y + 4, text, "start")
            yield from self._tier_links(tier, row, y)

    def _tier_links(self, tier: int, row: Sequence[Box], y: float) -> Iterator[str]:
        """The links from this row to the one above, or of the cells below it."""
        above = self.layout.rows[tier + 1] if tier + 1 < len(self.layout.rows) else []
        links = [
            link
            for bundle in self.layout.bundles
            if (bundle.a.tier, bundle.b.tier) == (tier, tier + 1)
            for link, _ in bundle.links
        ]
        if links and above:
            middle = (y + above[0].y + above[0].height / 2) / 2
            yield from _lines(20, middle, words.tier_links_text(links))
        cells = [link for nic in _cell_nics(row) for link, _ in [self.layout.cell_links[nic]]]
        if cells:
            yield from _lines(20, y + 44, words.tier_links_text(cells))

    def _has_cells(self) -> bool:
        return any(box.cells for row in self.layout.rows for box in row)

    def _legend(self, y: float) -> Iterator[str]:
        text = "A line is the links between two nodes, the wider the more bandwidth."
        text += " A square is a NIC." if self._has_cells() else ""
        text += " Red: the paths." if self.highlight else ""
        if self.utilisation is None:
            yield text_at(20, y + 4, text, "start small muted")
            return
        step = 150 / STEPS
        for index in range(STEPS):
            colour = colour_at((index + 0.5) / STEPS)
            yield element("rect", x=28 + index * step, y=y - 12, width=step, height=10, fill=colour)
        for ratio in (0.0, 0.5, 1.0):
            percent = f"{100 * ratio * self.scale_end:g} %"
            yield text_at(28 + 150 * ratio, y + 12, percent, "small muted")
        ends = "" if self.scale_end == 1 else f", colours up to {100 * self.scale_end:g} %"
        lines = [f"Mean utilisation{ends}. The half of a line at a node is what it sends."]
        if self._has_cells():
            lines.append("A square is a NIC: the left half what it sends, the right receives.")
        for index, line in enumerate(lines):
            yield text_at(210, y - 3 + 15 * index, line, "start small muted")


def _cell_nics(row: Sequence[Box]) -> Iterator[int]:
    return (nic for box in row for nic in box.cells)


def _rate(bundle: Bundle) -> int:
    return sum(link.rate_bps for link, _ in bundle.links)


def _stroke(colour: str, class_: str) -> dict[str, str]:
    return {"stroke": colour, "fill": "none"} if colour else {"class_": class_}


def _fill(colour: str, class_: str = "cell") -> dict[str, str]:
    return {"fill": colour} if colour else {"class_": class_}


def _lines(x: float, y: float, texts: Sequence[str]) -> Iterator[str]:
    for index, text in enumerate(texts):
        yield text_at(x, y + 15 * index, text, "start small muted")


def _label(bundle: Bundle) -> str:
    """A bundle's rate at its line; above the boxes where it is too short for it."""
    within = bundle.a.tier == bundle.b.tier
    x, y = point(bundle, 0.5 if within else 0.3)
    (ax, _), (bx, _) = ends(bundle)
    if within and not bundle.bend and abs(ax - bx) < _LABEL_WIDTH:
        y = bundle.a.y - 10
    return text_at(x, y + 4, words.link_label(bundle), "small halo")

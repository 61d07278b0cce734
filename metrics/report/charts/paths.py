"""Where the data went: its bytes through the fabric, layer by layer."""

import itertools
from collections import Counter
from collections.abc import Iterator, Sequence

import polars as pl

from metrics.presentation import size_text
from metrics.report.figure import PALETTE, Chart, layout

__all__ = ["path_picture"]

HOST_LIMIT = 32
"""More hosts than these are left out, and the picture begins and ends at their switches."""
BAND_LIMIT = 600
"""Most bands, the widest."""

Node = tuple[str, int, str]
"""The way up or down (or the turning point), steps from the host, and the name."""
Band = tuple[Node, Node]


def path_picture(paths: pl.DataFrame) -> Chart | None:
    """Bands between nodes, as wide as the bytes; a node stands once on the way up, once down.

    None without paths that carry data.
    """
    data = paths.filter(pl.col("is_data"))
    shows_hosts = data["source_rank"].n_unique() <= HOST_LIMIT
    bands = _bands(data, shows_hosts)
    if not bands:
        return None
    shown = sorted(bands.items(), key=lambda band: (-band[1], band[0]))[:BAND_LIMIT]
    nodes = sorted({node for band, _ in shown for node in band})
    number = {node: place for place, node in enumerate(nodes)}
    colours = [PALETTE[place % len(PALETTE)] for place in _places(nodes)]
    trace = {
        "type": "sankey",
        "node": {
            "label": [name for _, _, name in nodes],
            "color": colours,
            "pad": 8,
            "thickness": 11,
            "line": {"width": 0},
            "hovertemplate": "%{label}: %{value:,.0f} B<extra></extra>",
        },
        "link": {
            "source": [number[start] for (start, _), _ in shown],
            "target": [number[end] for (_, end), _ in shown],
            "value": [size for _, size in shown],
            "color": [f"{colours[number[start]]}59" for (start, _), _ in shown],
            "hovertemplate": "%{source.label} → %{target.label}: %{value:,.0f} B<extra></extra>",
        },
    }
    note = (
        "The way up the fabric, then down, from left to right; the width of a band is the frame "
        f"bytes of all flows that carry data, {size_text(int(data['tx_bytes'].sum()))} in all. "
        f"{len(shown)} of {len(bands)} bands (the widest; cap {BAND_LIMIT})."
    )
    if not shows_hosts:
        note += f" Hosts are left out, being more than {HOST_LIMIT}."
    most = max(Counter(node[:2] for node in nodes).values())
    options = {"margin": {"l": 14, "r": 14, "t": 14, "b": 14}}
    return Chart("Where the data went", note, [trace], layout(160 + 22 * most, {}, **options))


def _bands(data: pl.DataFrame, shows_hosts: bool) -> Counter[Band]:
    """Bytes between neighbours of all paths."""
    bands: Counter[Band] = Counter()
    alike = data.group_by("nodes").agg(pl.col("tx_bytes").sum())
    for names, size in alike.iter_rows():
        places = list(_layered(names))
        inner = places if shows_hosts else places[1:-1]
        for band in itertools.pairwise(inner):
            bands[band] += size
    return bands


def _layered(names: Sequence[str]) -> Iterator[Node]:
    """The nodes of a path with their layers: the first half goes up, the second down."""
    for up, name in enumerate(names):
        down = len(names) - 1 - up
        way = "up" if up < down else "down" if down < up else "turn"
        yield (way, min(up, down), name)


def _places(nodes: Sequence[Node]) -> list[int]:
    """Number of each node's name within its layer, so that a node has one colour on both ways."""
    seen: dict[str, int] = {}
    counts: Counter[int] = Counter()
    for _, step, name in nodes:
        if name not in seen:
            seen[name] = counts[step]
            counts[step] += 1
    return [seen[name] for _, _, name in nodes]

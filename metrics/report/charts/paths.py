"""Where the data went: its bytes through the fabric, layer by layer."""

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence

import polars as pl

from metrics.analysis.flow_paths import node_of
from metrics.presentation import size_text
from metrics.report.figure import PALETTE, Chart, layout

__all__ = ["path_picture"]

HOST_LIMIT = 32
"""More hosts than these are left out, and the picture begins and ends at their switches."""
BAND_LIMIT = 600
"""Most bands, the widest."""

Node = tuple[str, int, str]
"""The way up or down (or the top), steps from the hosts, and the name."""
Band = tuple[Node, Node]


def path_picture(flow_links: pl.DataFrame) -> Chart | None:
    """Bands between nodes, as wide as the bytes; a node stands once on the way up, once down.

    None where no flow carried data.
    """
    data = flow_links.filter((pl.col("data_bytes").sum() > 0).over(_FLOW)).cast(
        {"source": pl.String, "destination": pl.String}
    )
    from_hosts = data.filter(~pl.col("source").str.contains(":", literal=True))
    shows_hosts = from_hosts["source"].n_unique() <= HOST_LIMIT
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
    sent = size_text(int(from_hosts["tx_bytes"].sum()))
    note = (
        "The way up the fabric, then down, from left to right; the width of a band is the frame "
        f"bytes of all flows that carry data, {sent} from all hosts. "
        f"{len(shown)} of {len(bands)} bands (the widest; cap {BAND_LIMIT})."
    )
    if not shows_hosts:
        note += f" Hosts are left out, being more than {HOST_LIMIT}."
    most = max(Counter(node[:2] for node in nodes).values())
    options = {"margin": {"l": 14, "r": 14, "t": 14, "b": 14}}
    return Chart("Where the data went", note, [trace], layout(160 + 22 * most, {}, **options))


_FLOW = ["source_rank", "destination_rank", "source_port"]


def _bands(data: pl.DataFrame, shows_hosts: bool) -> Counter[Band]:
    """Bytes on the links, and what turns round at a node below the top."""
    crossed: Counter[tuple[str, str]] = Counter()
    sums = data.group_by("source", "destination").agg(pl.col("tx_bytes").sum())
    for source, destination, size in sums.iter_rows():
        crossed[node_of(source), node_of(destination)] += size
    hosts = {end for end in data["source"].unique() if ":" not in end}
    hosts |= {end for end in data["destination"].unique() if ":" not in end}
    steps = _steps(crossed, hosts)
    top = max(steps.values())
    bands: Counter[Band] = Counter()
    turning: Counter[str] = Counter()
    for (here, there), size in crossed.items():
        goes_up = steps[here] < steps[there]
        ends = [_placed(here, steps, top, steps[here] <= steps[there]),
                _placed(there, steps, top, goes_up)]  # fmt: skip
        if shows_hosts or not {here, there} & hosts:
            bands[ends[0], ends[1]] += size
        if goes_up:
            turning[there] += size
        if steps[here] <= steps[there]:
            turning[here] -= size
    for node, size in turning.items():
        if 0 < steps[node] < top and size > 0:
            bands[("up", steps[node], node), ("way down", steps[node], node)] += size
    return bands


def _steps(pairs: Iterable[tuple[str, str]], hosts: Iterable[str]) -> dict[str, int]:
    """Links between each node and the nearest host."""
    neighbours: dict[str, set[str]] = {}
    for here, there in pairs:
        neighbours.setdefault(here, set()).add(there)
        neighbours.setdefault(there, set()).add(here)
    steps = dict.fromkeys(hosts, 0)
    reached = list(steps)
    for node in reached:
        for neighbour in sorted(neighbours.get(node, ())):
            if neighbour not in steps:
                steps[neighbour] = steps[node] + 1
                reached.append(neighbour)
    return steps | {node: 1 for node in neighbours if node not in steps}


def _placed(name: str, steps: Mapping[str, int], top: int, goes_up: bool) -> Node:
    """A node on the way up or down; at the top it is one."""
    way = "top" if steps[name] == top else "up" if goes_up else "way down"
    return (way, steps[name], name)


def _places(nodes: Sequence[Node]) -> list[int]:
    """Number of each node's name within its layer, so that a node has one colour on both ways."""
    seen: dict[str, int] = {}
    counts: Counter[int] = Counter()
    for _, step, name in nodes:
        if name not in seen:
            seen[name] = counts[step]
            counts[step] += 1
    return [seen[name] for _, _, name in nodes]

"""The paths that flows took, from what each of them sent over each link.

A flow is source, destination and UDP source port. Under flow hashing its links are one path; where
packets or flowlets are spread they branch, and are taken apart into paths: the largest first, each
as large as its narrowest link. In a Clos, where one choice fixes the rest, that is exact.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import polars as pl

__all__ = ["FLOW_LINK_SCHEMA", "PATH_SCHEMA", "FlowPath", "flow_paths", "node_of"]

FLOW_LINK_SCHEMA: Mapping[str, Any] = {
    "source_rank": pl.UInt32, "destination_rank": pl.UInt32, "source_port": pl.UInt16,
    "link": pl.String, "direction": pl.UInt8, "source": pl.String, "destination": pl.String,
    "tx_packets": pl.UInt64, "tx_bytes": pl.UInt64, "data_bytes": pl.UInt64,
}  # fmt: skip
"""What `flow_paths` takes."""
PATH_SCHEMA: Mapping[str, Any] = {
    "source_rank": pl.UInt32, "destination_rank": pl.UInt32, "source_port": pl.UInt16,
    "path": pl.UInt32, "nodes": pl.List(pl.String), "links": pl.List(pl.String),
    "arrives": pl.Boolean,
    "tx_packets": pl.UInt64, "tx_bytes": pl.UInt64, "is_data": pl.Boolean,
    "share_ratio": pl.Float64,
}  # fmt: skip
"""What `flow_paths` returns."""
LINK_LIMIT = 60_000
"""Most links of flows that branch; the smallest flows past that are not taken apart."""
_HOP_LIMIT = 64
"""Links of a path: what a time to live allows."""
_FLOW = ["source_rank", "destination_rank", "source_port"]


@dataclass(frozen=True, slots=True)
class FlowPath:
    """One way from a NIC, with what went along it."""

    ends: tuple[str, ...]
    """Sending end of the first link, then the receiving end of every link."""
    links: tuple[str, ...]
    packets: int
    bytes: int


@dataclass(slots=True)
class _Edge:
    """What is left of a link's packets while paths are taken off."""

    link: str
    source: str
    destination: str
    packets: int
    bytes: int

    def take(self, packets: int) -> int:
        """Take packets off; the bytes of them, at the mean size of what was left."""
        taken = self.bytes * packets // self.packets
        self.packets -= packets
        self.bytes -= taken
        return taken


def node_of(end: str) -> str:
    """`leaf0` of the link end `leaf0:4`; a NIC's end is its name."""
    return end.rpartition(":")[0] or end


def flow_paths(flow_links: pl.DataFrame) -> pl.DataFrame:
    """One row per flow and path, in order of flow and size; `PATH_SCHEMA`.

    Pause frames, which have no ranks, are left out, and so are the smallest of too many flows that
    branch (`LINK_LIMIT`).
    """
    names = ["link", "source", "destination"]
    flows = flow_links.filter(pl.col("source_rank").is_not_null()).cast(
        dict.fromkeys(names, pl.String)
    )
    if flows.is_empty():
        return pl.DataFrame(schema=dict(PATH_SCHEMA))
    single = _single_paths(flows)
    others = flows.join(single, on=_FLOW, how="anti")
    return pl.concat([single, _branching_paths(others)]).sort(*_FLOW, "path")


def _single_paths(flows: pl.DataFrame) -> pl.DataFrame:
    """The paths of the flows that don't branch and lose nothing."""
    column = pl.col
    ends = flows.with_columns(_node("source").alias("here"), _node("destination").alias("there"))
    alike = ends.filter(
        (column("tx_packets").min() == column("tx_packets").max()).over(_FLOW),
        (column("here").n_unique() == pl.len()).over(_FLOW),
    )
    hop = alike.filter(~column("source").str.contains(":", literal=True))
    hop = hop.filter((pl.len() == 1).over(_FLOW))
    hops = [hop.with_columns(hop=pl.lit(0, pl.UInt32))]
    while len(hops) <= _HOP_LIMIT and not hops[-1].is_empty():
        ahead = hops[-1].select(*_FLOW, column("there").alias("here"))
        following = alike.join(ahead, on=[*_FLOW, "here"])
        hops.append(following.with_columns(hop=pl.lit(len(hops), pl.UInt32)))
    paths = pl.concat(hops[:_HOP_LIMIT]).sort(*_FLOW, "hop").group_by(_FLOW).agg(
        pl.concat([column("here").first(), column("there")]).alias("nodes"),
        column("link").alias("links"),
        ~column("destination").last().str.contains(":", literal=True).alias("arrives"),
        column("tx_packets", "tx_bytes").first(),
        (column("data_bytes").sum() > 0).alias("is_data"),
    )  # fmt: skip
    whole = flows.group_by(_FLOW).len("count")
    return (
        paths.join(whole, on=_FLOW)
        .filter(column("links").list.len() == column("count"))
        .with_columns(path=pl.lit(0), share_ratio=pl.lit(1.0))
        .select(column(name).cast(dtype) for name, dtype in PATH_SCHEMA.items())
    )


def _node(end: str) -> pl.Expr:
    """`node_of` a column."""
    return pl.col(end).str.replace(r":[^:]*$", "")


def _branching_paths(flows: pl.DataFrame) -> pl.DataFrame:
    """The paths of any flows, of the largest until `LINK_LIMIT` is reached."""
    rows = []
    sizes = flows.group_by(_FLOW).agg(pl.col("tx_bytes").max(), pl.len().alias("links"))
    order = sizes.sort("tx_bytes", *_FLOW, descending=[True, False, False, False])
    chosen = order.filter(pl.col("links").cum_sum() <= LINK_LIMIT)
    flows = flows.join(chosen, on=_FLOW, how="semi")
    grouped = flows.group_by(_FLOW).agg(
        "link", "source", "destination", "tx_packets", "tx_bytes", pl.col("data_bytes").sum()
    )
    for *flow, links, sources, ends, packets, sizes, data_bytes in grouped.sort(_FLOW).iter_rows():
        edges = [_Edge(*edge) for edge in zip(links, sources, ends, packets, sizes, strict=True)]
        total = sum(edge.packets for edge in edges if ":" not in edge.source)
        paths = sorted(_taken_apart(edges), key=lambda path: -path.packets)
        for number, path in enumerate(paths):
            nodes = [node_of(end) for end in path.ends]
            rows.append(
                (*flow, number, nodes, path.links, ":" not in path.ends[-1], path.packets,
                 path.bytes, data_bytes > 0, path.packets / total)
            )  # fmt: skip
    return pl.DataFrame(rows, schema=dict(PATH_SCHEMA), orient="row")


def _taken_apart(edges: Sequence[_Edge]) -> Iterator[FlowPath]:
    """Paths from the sending NIC until nothing of what it sent is left."""
    leaving: dict[str, list[_Edge]] = {}
    for edge in edges:
        leaving.setdefault(node_of(edge.source), []).append(edge)
    first = next((node_of(edge.source) for edge in edges if ":" not in edge.source), None)
    while first is not None and (way := _widest(leaving, first)):
        packets = min(edge.packets for edge in way)
        narrowest = min(range(len(way)), key=lambda place: way[place].packets)
        taken = [edge.take(packets) for edge in way]
        ends = (way[0].source, *(edge.destination for edge in way))
        yield FlowPath(ends, tuple(edge.link for edge in way), packets, taken[narrowest])


def _widest(leaving: dict[str, list[_Edge]], node: str) -> list[_Edge]:
    """The way on from `node` over the links with most packets left, visiting no node twice."""
    way: list[_Edge] = []
    visited = {node}
    while True:
        choices = [
            edge
            for edge in leaving.get(node, ())
            if edge.packets > 0 and node_of(edge.destination) not in visited
        ]
        if not choices:
            return way
        way.append(max(choices, key=lambda edge: edge.packets))
        node = node_of(way[-1].destination)
        visited.add(node)

"""`pauses.parquet`: every pause that a switch asked a neighbour for, with what it follows from."""

from collections.abc import Mapping
from typing import Any

import numpy as np
import polars as pl
from numpy.typing import NDArray

from metrics.analysis.pause_trees import parents
from metrics.records.operations import NOT_DONE
from metrics.records.series import Fabric

__all__ = ["PAUSE_SCHEMA", "pause_table"]

PAUSE_SCHEMA: Mapping[str, Any] = {
    "pause": pl.UInt32, "begin_ns": pl.Int64, "end_ns": pl.Int64, "switch": pl.String,
    "port": pl.UInt16, "priority": pl.UInt8, "link": pl.String, "paused": pl.String,
    "held_bytes": pl.UInt64, "max_held_bytes": pl.UInt64, "cause_port": pl.UInt16,
    "cause_towards": pl.String, "cause_bytes": pl.UInt64, "cause_depth_bytes": pl.UInt64,
    "cause_waited_ns": pl.Int64, "parent": pl.UInt32,
}  # fmt: skip
"""Columns of `pauses.parquet`."""

_Columns = Mapping[str, NDArray[Any]]


def pause_table(
    pauses: _Columns, causes: _Columns, config: Mapping[str, Any], fabric: Fabric
) -> pl.DataFrame:
    """One row per pause in the order of their beginnings; `PAUSE_SCHEMA`."""
    if "begin_ps" not in pauses or len(pauses["begin_ps"]) == 0:
        return pl.DataFrame(schema=dict(PAUSE_SCHEMA))
    events = _with_causes(pauses, causes).sort("begin_ps", "switch", "number").to_dicts()
    links = _links(config)
    names = _ends(fabric)
    rows = []
    for number, (event, parent) in enumerate(zip(events, parents(events, links), strict=True)):
        switch = str(fabric.switches[event["switch"]])
        link, paused = names[f"{switch}:{event['port']}"]
        _, towards = names[f"{switch}:{event['cause_port']}"]
        end_ps = event["end_ps"]
        rows.append(
            (number, event["begin_ps"] // 1000,
             None if end_ps == int(NOT_DONE) else end_ps // 1000, switch, event["port"],
             event["priority"], link, paused, event["held_bytes"], event["max_held_bytes"],
             event["cause_port"], towards.rpartition(":")[0] or towards, event["ingress_bytes"],
             event["depth_bytes"], (event["begin_ps"] - event["oldest_ps"]) // 1000, parent)
        )  # fmt: skip
    return pl.DataFrame(rows, schema=dict(PAUSE_SCHEMA), orient="row")


def _with_causes(pauses: _Columns, causes: _Columns) -> pl.DataFrame:
    """Pauses with the queue that held most of their bytes."""
    keys = ["switch", "number"]
    main = (
        pl.DataFrame({name: np.asarray(values) for name, values in causes.items()})
        .sort(*keys, "ingress_bytes", descending=[False, False, True])
        .unique(keys, keep="first", maintain_order=True)
        .rename({"egress_port": "cause_port"})
    )
    frame = pl.DataFrame({name: np.asarray(values) for name, values in pauses.items()})
    return frame.join(main, on=keys, how="inner")


def _links(config: Mapping[str, Any]) -> dict[tuple[int, int], Any]:
    """(switch, port) -> (switch, port) at the other end or None, delay, rate."""
    links: dict[tuple[int, int], Any] = {}
    for link in config["links"]:
        for here, there in ((link["a"], link["b"]), (link["b"], link["a"])):
            if "switch" in here["node"]:
                switch = there["node"].get("switch")
                beyond = None if switch is None else (switch, there["port"])
                place = (here["node"]["switch"], here["port"])
                links[place] = (beyond, link["delay_ps"], float(link["rate_bps"]))
    return links


def _ends(fabric: Fabric) -> dict[str, tuple[str, str]]:
    """Name of an end -> name of its link and of the other end."""
    rows = fabric.links.select("source", "name", "destination").iter_rows()
    return {source: (name, destination) for source, name, destination in rows}

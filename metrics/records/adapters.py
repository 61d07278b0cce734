"""`adapters.parquet`: what the counters of RDMA devices had grown to, over time."""

from collections.abc import Mapping, Sequence
from typing import Any, Final

import polars as pl

__all__ = ["ADAPTER_SCHEMA", "adapter_table"]

ADAPTER_SCHEMA: Mapping[str, Any] = {
    "time_ns": pl.Int64, "nic": pl.String, "counter": pl.String, "value": pl.UInt64,
}  # fmt: skip
"""Columns of `adapters.parquet`."""

_PS_PER_NS: Final = 1000


def adapter_table(series: Mapping[str, Any], nics: Sequence[str]) -> pl.DataFrame:
    """One row for each counter that had grown since the sample before; `ADAPTER_SCHEMA`."""
    if not len(series.get("time_ps", ())):
        return pl.DataFrame(schema=dict(ADAPTER_SCHEMA))
    columns = {
        "time_ns": (series["time_ps"] // _PS_PER_NS).astype("int64"),
        "nic": [nics[nic] for nic in series["nic"]],
        "counter": [str(name) for name in series["name"]],
        "value": series["value"],
    }
    return pl.DataFrame(columns, schema=dict(ADAPTER_SCHEMA))

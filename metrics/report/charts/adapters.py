"""Counters of RDMA devices over time: what of congestion and loss a real adapter tells."""

from collections.abc import Sequence
from typing import Any, Final

import polars as pl

from metrics.presentation import count_text, duration_unit
from metrics.report.figure import PALETTE, Chart, axis, layout, logarithmic, packed

__all__ = ["COUNTER_LIMIT", "device_counters"]

COUNTER_LIMIT: Final = 8
"""Most counters of the chart."""
_FIRST: Final = (
    "np_ecn_marked_roce_packets",
    "np_cnp_sent",
    "rp_cnp_handled",
    "out_of_sequence",
    "packet_seq_err",
    "local_ack_timeout_err",
    "rx_icrc_encapsulated",
    "out_of_buffer",
)
"""Congestion and loss before all others. *Source*: Linux, mlx5 `hw_counters`."""


def device_counters(samples: pl.DataFrame) -> Chart | None:
    """What each counter had grown to, summed over the NICs; None without samples."""
    if samples.is_empty():
        return None
    shown, known = _chosen(samples)
    scale, unit = duration_unit(float(samples["time_ns"].max() or 1))  # type: ignore[arg-type]
    data = [
        _line(_summed(samples.filter(counter=name)), name, scale, unit, PALETTE[number % 8])
        for number, name in enumerate(shown)
    ]
    axes = {
        "xaxis": axis(f"emulated time, {unit}"),
        "yaxis": logarithmic("count since the start", samples["value"].to_numpy()),
    }
    note = (
        f"{len(shown)} of {count_text(known)} counters of the kernel that moved, congestion and "
        f"loss first, then those that grew most (cap {COUNTER_LIMIT}); sums over the NICs, so that "
        "what a port counts stands there once for each of its NICs."
    )
    return Chart("Counters of the RDMA devices", note, data, layout(360, axes))


def _chosen(samples: pl.DataFrame) -> tuple[Sequence[str], int]:
    """Names of the counters to show, and how many there are."""
    largest = samples.group_by("counter").agg(pl.col("value").max())
    ordered = largest.sort("value", "counter", descending=[True, False])["counter"].to_list()
    first = [name for name in _FIRST if name in ordered]
    rest = [name for name in ordered if name not in first]
    return [*first, *rest][:COUNTER_LIMIT], len(ordered)


def _summed(samples: pl.DataFrame) -> pl.DataFrame:
    """Sum over the NICs at each sample: a NIC without a row has not moved since its last."""
    wide = samples.pivot("nic", index="time_ns", values="value", aggregate_function="max")
    nics = [name for name in wide.columns if name != "time_ns"]
    filled = wide.sort("time_ns").with_columns(pl.col(nics).forward_fill().fill_null(0))
    return filled.select("time_ns", pl.sum_horizontal(nics).alias("value"))


def _line(series: pl.DataFrame, name: str, scale: float, unit: str, colour: str) -> dict[str, Any]:
    return {
        "type": "scatter", "mode": "lines+markers", "name": name,
        "x": packed(series["time_ns"].to_numpy() / scale),
        "y": packed(series["value"].to_numpy().astype("f8")),
        "line": {"width": 1.5, "color": colour, "shape": "hv"}, "marker": {"size": 3},
        "hovertemplate": f"%{{x:.4g}} {unit}: %{{y}}<extra>{name}</extra>",
    }  # fmt: skip

"""Utilisation of the links over time: every direction as a heat map, the tiers as lines."""

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import polars as pl
from numpy.typing import NDArray

from metrics.analysis.loads import tier_of
from metrics.drawing.scale import STOPS
from metrics.presentation import duration_unit
from metrics.report.charts.grid import TimeGrid, time_grid
from metrics.report.charts.markers import markers
from metrics.report.figure import PALETTE, Chart, axis, layout, packed

__all__ = ["link_heat_map", "link_lines"]

Events = Sequence[Mapping[str, Any]]
"""`link_events` of `run.json`."""
ROW_LIMIT = 96
"""Most link directions of the heat map, the busiest."""
BIN_LIMIT = 400
_DENOMINATOR = "Utilisation: time that frames with preambles and gaps occupy the line / time."
_IDLE = "#f6f8fa"


def link_heat_map(links: pl.DataFrame, loads: pl.DataFrame, events: Events = ()) -> Chart | None:
    """One row per direction that sent, sorted by tier and name; `loads` has the busiest first."""
    if links.is_empty():
        return None
    shown = loads.head(ROW_LIMIT).filter(pl.col("tx_bytes") > 0)
    keys = sorted(shown.iter_rows(named=True), key=_row_order)
    grid = time_grid(links, BIN_LIMIT)
    values = _utilisation(links, keys, grid)
    pixels = max(8, min(15, 800 // len(keys)))
    scale, unit = duration_unit(float(grid.width_ns * grid.bins))
    trace = {
        "type": "heatmap",
        "x": packed(grid.middles_ns / scale, "f4"),
        "y": [f"{key['source']} → {key['destination']}" for key in keys],
        "z": packed(values * 100, "f4"),
        "zmin": 0,
        "zmax": 100,
        "colorscale": [[0.0, _IDLE], *([at, f"rgb{colour}"] for at, colour in STOPS[1:])],
        "colorbar": {"title": {"text": "%", "side": "top"}, "thickness": 12, "outlinewidth": 0},
        "hovertemplate": f"%{{y}}<br>%{{x:.4g}} {unit}: %{{z:.1f}} %<extra></extra>",
    }
    axes = {
        "xaxis": axis(f"emulated time, {unit}", showgrid=False),
        "yaxis": axis("", autorange="reversed", tickfont={"size": min(10, pixels)}, showgrid=False,
                      dtick=1, type="category"),
    }  # fmt: skip
    note = (
        f"{len(keys)} of {len(loads)} link directions (the busiest; cap {ROW_LIMIT}), mean over "
        f"{grid.width_ns / scale:.4g} {unit}. {_DENOMINATOR}"
    )
    options = markers(events, scale)
    height = 110 + pixels * len(keys)
    return Chart("Link utilisation", note, [trace], layout(height, axes, **options))


def link_lines(links: pl.DataFrame, loads: pl.DataFrame, events: Events = ()) -> Chart | None:
    """Mean and largest utilisation of every tier over time, idle links included."""
    if links.is_empty():
        return None
    rows = loads.to_dicts()
    grid = time_grid(links, BIN_LIMIT)
    values = _utilisation(links, rows, grid) * 100
    tiers = loads["tier"].to_numpy()
    scale, unit = duration_unit(float(grid.width_ns * grid.bins))
    times = packed(grid.middles_ns / scale, "f4")
    data = []
    for number, tier in enumerate(sorted(set(tiers.tolist()))):
        part, colour = values[tiers == tier], PALETTE[number]
        for label, series, width in (
            (f"{tier}: largest of {len(part)}", part.max(axis=0), 1.2),
            (f"{tier}: mean", part.mean(axis=0), 2.4),
        ):
            data.append(
                {
                    "type": "scatter", "mode": "lines", "name": label, "x": times,
                    "y": packed(series, "f4"), "opacity": 1.0 if width > 2 else 0.55,
                    "line": {"color": colour, "width": width},
                    "hovertemplate": f"%{{x:.4g}} {unit}: %{{y:.1f}} %<extra>{label}</extra>",
                }
            )  # fmt: skip
    axes = {
        "xaxis": axis(f"emulated time, {unit}"),
        "yaxis": axis("utilisation, % of line rate", range=[0, 104]),
    }
    bin_text = f"{grid.width_ns / scale:.4g} {unit}"
    note = f"Over all directions of a tier, idle ones included, in bins of {bin_text}. "
    options = markers(events, scale)
    return Chart(
        "Link utilisation by tier", note + _DENOMINATOR, data, layout(340, axes, **options)
    )


def _row_order(key: dict[str, object]) -> tuple[str, str, str]:
    """Tier first, then names with their numbers in order."""
    source, destination = str(key["source"]), str(key["destination"])
    return (tier_of(source, destination), _padded(source), _padded(destination))


def _padded(name: str) -> str:
    """A name whose numbers sort by value."""
    parts = ("".join(c if c.isdigit() else f" {c} " for c in name)).split()
    return " ".join(part.zfill(6) if part.isdigit() else part for part in parts)


def _utilisation(
    links: pl.DataFrame, keys: list[dict[str, object]], grid: TimeGrid
) -> NDArray[np.float64]:
    """float64[keys, bins]: mean utilisation; an interval without a sample was idle."""
    numbers = pl.DataFrame(
        {
            "link": [str(key["link"]) for key in keys],
            "direction": [key["direction"] for key in keys],
            "number": range(len(keys)),
        },
        schema={"link": pl.String, "direction": pl.UInt8, "number": pl.Int64},
    )
    joined = links.with_columns(pl.col("link").cast(pl.String)).join(
        numbers, on=["link", "direction"]
    )
    columns = grid.index(joined["time_ns"].to_numpy(), joined["interval_ns"].to_numpy())
    weighted = (joined["utilisation_ratio"] * joined["interval_ns"]).to_numpy()
    sums = grid.sums(joined["number"].to_numpy(), len(keys), columns, weighted)
    return np.asarray(sums / grid.width_ns, dtype=np.float64)

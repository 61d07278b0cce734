"""Expected and actual share of every equal-cost port, for the most uneven groups."""

from collections.abc import Collection, Mapping
from typing import Any

import polars as pl

from metrics.report.figure import PALETTE, Chart, axis, layout

__all__ = ["ecmp_shares_chart", "group_name"]

PORT_LIMIT = 40
"""Most ports of the picture; groups are shown whole."""


def ecmp_shares_chart(shares: pl.DataFrame) -> Chart | None:
    """A bar for what each port carried, a mark for what its hash and an even spread let expect."""
    keys = ["switch", "group"]
    order = (
        shares.filter(pl.col("tx_bytes") > 0)
        .group_by(keys)
        .agg(pl.col("max_over_mean").first())
        .sort("max_over_mean", *keys, descending=[True, False, False])
    )
    ranked = order.with_row_index("place").select("place", *keys)
    ports = shares.join(ranked, on=keys).sort("place", "port")
    sizes = ports.group_by("place", maintain_order=True).len().sort("place")
    fitting = sizes.filter((pl.col("len").cum_sum() <= PORT_LIMIT) | (pl.col("place") == 0))
    shown = ports.filter(pl.col("place") <= fitting["place"].max())
    if shown.is_empty():
        return None
    numbered = set(shares.filter(pl.col("group") > 0)["switch"])
    place = [
        [group_name(row, numbered) for row in shown.iter_rows(named=True)],
        [f"{row['port']} → {row['next_node']}" for row in shown.iter_rows(named=True)],
    ]
    data = [
        {
            "type": "bar", "name": "carried", "x": place, "y": _percent(shown, "share_ratio"),
            "marker": {"color": PALETTE[0]},
            "hovertemplate": "%{x}: %{y:.2f} %<extra>carried</extra>",
        },
        _marks("expected of the flows", place, _percent(shown, "expected_share_ratio"),
               {"symbol": "diamond", "size": 9, "color": PALETTE[1],
                "line": {"width": 1, "color": "#ffffff"}}),
        _marks("even", place, _percent(shown, "even_share_ratio"),
               {"symbol": "line-ew", "size": 16, "line": {"width": 2, "color": "#45525f"}}),
    ]  # fmt: skip
    note = (
        f"{fitting.height} of {ranked.height} groups of equal-cost ports (the most uneven; cap "
        f"{PORT_LIMIT} ports): switch (and number of the group if it has several), port and next "
        "node. Shares of the bytes of the group, acknowledgements included. Expected: by the "
        "switch's hash over the job's flows, or even where packets are spread."
    )
    axes = {
        "xaxis": axis(
            "",
            type="multicategory",
            tickangle=-90 if len(shown) > 24 else -40 if len(shown) > 10 else 0,
        ),
        "yaxis": axis("share of the group's bytes, %", rangemode="tozero"),
    }
    return Chart("Load of equal-cost ports", note, data, layout(380, axes))


def group_name(row: Mapping[str, Any], numbered: Collection[str]) -> str:
    """The switch; with the number of the group if the switch has several (is `numbered`)."""
    return f"{row['switch']}.{row['group']}" if row["switch"] in numbered else str(row["switch"])


def _percent(shown: pl.DataFrame, column: str) -> list[float | None]:
    return [None if ratio is None else 100 * ratio for ratio in shown[column]]


def _marks(
    name: str, place: list[list[str]], values: list[float | None], marker: dict[str, Any]
) -> dict[str, Any]:
    return {
        "type": "scatter", "mode": "markers", "name": name, "x": place, "y": values,
        "marker": marker, "hovertemplate": f"%{{x}}: %{{y:.2f}} %<extra>{name}</extra>",
    }  # fmt: skip

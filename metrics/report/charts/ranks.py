"""What every rank did when, and where its time went."""

import numpy as np
import polars as pl

from metrics.analysis.overlap import rank_time_shares
from metrics.presentation import colour_of, count_text, duration_unit, kind_text
from metrics.report.figure import Chart, axis, layout, packed

__all__ = ["SPAN_LIMIT", "rank_timeline", "time_split"]

SPAN_LIMIT = 20_000
"""Most spans of the timeline."""
RANK_LIMIT = 64
"""Most ranks of one chart, evenly chosen."""


def rank_timeline(timeline: pl.DataFrame, end_ns: int) -> Chart | None:
    """One row per rank, one colour per kind of span."""
    spans = timeline.with_columns(pl.col("end_ns").fill_null(end_ns))
    ranks = chosen_ranks(spans)
    spans = spans.filter(pl.col("rank").is_in(ranks))
    total = len(spans)
    if total == 0:
        return None
    spans = spans.with_columns((pl.col("end_ns") - pl.col("start_ns")).alias("length_ns"))
    spans = spans.top_k(SPAN_LIMIT, by="length_ns") if total > SPAN_LIMIT else spans
    scale, unit = duration_unit(float(end_ns))
    pixels = max(8, min(28, 480 // len(ranks)))
    row_of = {rank: row for row, rank in enumerate(ranks)}
    data = [
        _spans_of(kind, group.sort("start_ns"), scale, unit, row_of, max(3, int(pixels * 0.6)))
        for (kind,), group in sorted(spans.group_by("kind"), key=lambda pair: _order(pair[0][0]))
    ]
    axes = {
        "xaxis": axis(f"emulated time, {unit}", range=[0, end_ns / scale]),
        "yaxis": axis(
            "rank", range=[len(ranks) - 0.5, -0.5], tickvals=list(range(len(ranks))),
            ticktext=[str(rank) for rank in ranks], showgrid=False,
        ),
    }  # fmt: skip
    note = (
        f"{count_text(len(spans))} of {count_text(total)} spans (the longest; cap "
        f"{count_text(SPAN_LIMIT)}), {len(ranks)} of {timeline['rank'].n_unique()} ranks (cap "
        f"{RANK_LIMIT}). Communication lies over computation. Drag to zoom; click a kind to "
        "hide it."
    )
    height = 110 + pixels * len(ranks)
    return Chart("Timeline of the ranks", note, data, layout(height, axes, hovermode="closest"))


def chosen_ranks(spans: pl.DataFrame) -> list[int]:
    """At most `RANK_LIMIT` ranks, evenly chosen."""
    ranks = spans["rank"].unique().sort().to_list()
    if len(ranks) <= RANK_LIMIT:
        return ranks
    places = np.linspace(0, len(ranks) - 1, RANK_LIMIT).round().astype(int)
    return [ranks[place] for place in places]


def _order(kind: object) -> tuple[bool, str]:
    """Computation first, so that communication is drawn over it."""
    return (kind != "compute", str(kind))


def _spans_of(
    kind: object, spans: pl.DataFrame, scale: float, unit: str, row_of: dict[int, int], width: int
) -> dict[str, object]:
    """All spans of one kind as one line with gaps."""
    count = len(spans)
    times = np.full((count, 3), np.nan)
    times[:, 0] = spans["start_ns"].to_numpy() / scale
    times[:, 1] = spans["end_ns"].to_numpy() / scale
    rows = np.array([row_of[rank] for rank in spans["rank"]], dtype=np.float64)
    names = [
        f"{name or kind_text(str(kind))}<br>{length / scale:.4g} {unit}"
        for name, length in spans.select("name", "length_ns").iter_rows()
    ]
    return {
        "type": "scatter",
        "mode": "lines",
        "name": kind_text(str(kind)),
        "x": packed(times.ravel()),
        "y": packed(np.repeat(rows, 3), "f4"),
        "text": [text for name in names for text in (name, name, "")],
        "line": {"color": colour_of(str(kind)), "width": width},
        "connectgaps": False,
        "hovertemplate": f"%{{text}}<br>at %{{x:.5g}} {unit}<extra>{kind_text(str(kind))}</extra>",
    }


def time_split(timeline: pl.DataFrame, end_ns: int) -> Chart | None:
    """Computation, exposed communication and idle time of every rank, in % of the run."""
    if timeline.is_empty() or end_ns <= 0:
        return None
    ranks = chosen_ranks(timeline)
    by_rank = rank_time_shares(timeline.filter(pl.col("rank").is_in(ranks)), end_ns)
    shares = [by_rank[rank] for rank in ranks]
    parts = (
        ("compute_ns", "computation", colour_of("compute")),
        ("exposed_communication_ns", "exposed communication", "#e07b39"),
        ("idle_ns", "idle", "#eef1f4"),
    )
    data = [
        {
            "type": "bar",
            "name": name,
            "x": [str(rank) for rank in ranks],
            "y": [100 * share[column] / end_ns for share in shares],
            "marker": {"color": colour, "line": {"width": 0.5, "color": "#c9d2db"}},
            "hovertemplate": f"rank %{{x}}: %{{y:.1f}} % {name}<extra></extra>",
        }
        for column, name, colour in parts
    ]
    axes = {
        "xaxis": axis("rank", type="category"),
        "yaxis": axis("share of emulated time, %", range=[0, 100]),
    }
    note = (
        "Exposed communication: a rank communicates and computes nothing. Divided by the emulated "
        "time of the run."
    )
    return Chart(
        "Where the time went", note, data, layout(380, axes, barmode="stack"), width="half"
    )

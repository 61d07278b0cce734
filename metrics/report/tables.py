"""The tables of the report."""

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import polars as pl

from metrics.analysis.groups import collective_groups, flow_groups
from metrics.analysis.loads import tier_balances
from metrics.analysis.quantiles import QUANTILES
from metrics.classes import SIZE_CLASSES, size_class_indices
from metrics.presentation import (
    MISSING,
    bandwidth_text,
    count_text,
    duration_text,
    kind_text,
    rate_text,
    share_text,
    size_text,
)
from metrics.report.markup import Cell, Column, Raw, table

__all__ = [
    "collective_table",
    "counter_table",
    "flow_table",
    "late_ranks",
    "link_event_table",
    "load_table",
]

ROW_LIMIT = 200
"""Most rows of a table; which ones is stated below it."""
LINK_LIMIT = 40
EVENT_LIMIT = 100
"""Most link events of the table, the first."""


def duration_cell(ns: float | None) -> Cell:
    """A duration, sorted by its value."""
    return Cell(duration_text(ns), -1.0 if ns is None else ns)


def _number(text: str, value: float | None) -> Cell:
    """A figure, sorted by its value; missing ones first."""
    return Cell(text, -1.0 if value is None else value)


def collective_table(collectives: pl.DataFrame) -> tuple[Raw, str]:
    """One row per kind, algorithm, size and number of ranks; and a note about what is left out."""
    columns = [
        Column("Collective", numeric=False),
        Column("Group", numeric=False, hint="Process group, or how many of them"),
        Column("Ranks"),
        Column("Size", hint="S as in nccl-tests: the whole array"),
        Column("Count"),
        *(Column(label) for label in QUANTILES),
        Column("max"),
        Column("p50 from last start", hint="Last end less last start: without waiting for ranks"),
        Column("CV", hint="Standard deviation / mean of the completion times"),
        Column("algbw", "GB/s", hint="S / t of the median; 10^9 bytes a second"),
        Column("busbw", "GB/s", hint="algbw x busbw factor (nccl-tests)"),
        Column("Ideal"),
        Column("Of ideal", hint="Ideal time / median completion time"),
        Column(
            "Of ideal from last start",
            hint="Ideal time / median time from the last start: without waiting for late ranks; "
            "above 100 % where ranks that came early had done the work before",
        ),
        Column("Marked", hint="Data packets that arrived CE"),
        Column("Resent", hint="Data packets sent again"),
    ]
    groups = collective_groups(collectives)
    note = "" if len(groups) <= ROW_LIMIT else f"{ROW_LIMIT} of {len(groups)} rows: most time."
    return table(columns, [_collective_row(row) for row in groups[:ROW_LIMIT]]), note


def _collective_row(row: Mapping[str, Any]) -> list[Cell]:
    names = row["groups"]
    count = count_text(row["count"])
    if row["incomplete"]:
        count += f" + {row['incomplete']} incomplete"
    return [
        Cell(_carried_as(row)),
        Cell(str(names[0]) if len(names) == 1 else f"{len(names)} groups"),
        _number(str(row["ranks"]), row["ranks"]),
        _number(size_text(row["size_bytes"]), row["size_bytes"]),
        _number(count, row["count"]),
        *(duration_cell(row[label]) for label in QUANTILES),
        duration_cell(row["max"]),
        duration_cell(row["from_last_start_ns"]),
        _number(share_text(row["cv_ratio"]), row["cv_ratio"]),
        _number(bandwidth_text(row["algbw_GBps"]), row["algbw_GBps"]),
        _number(bandwidth_text(row["busbw_GBps"]), row["busbw_GBps"]),
        duration_cell(row["ideal_ns"]),
        _number(share_text(row["ideal_ratio"]), row["ideal_ratio"]),
        _bounded(row["ideal_from_last_start_ratio"]),
        _number(count_text(row["marked_packets"]), row["marked_packets"]),
        _number(count_text(row["retransmitted_packets"]), row["retransmitted_packets"]),
    ]


def _carried_as(row: Mapping[str, Any]) -> str:
    """Kind and algorithm; the traffic class where it is a further one."""
    parts = [kind_text(row["kind"]), row["algorithm"]]
    if row["traffic_class"] != "data":
        parts.append(f"class {row['traffic_class']}")
    return ", ".join(filter(None, parts))


def _bounded(ratio: float | None) -> Cell:
    """A share that may be above 1 without meaning."""
    text = "> 100 %" if ratio is not None and ratio > 1 else share_text(ratio)
    return _number(text, ratio)


def flow_table(flows: pl.DataFrame) -> Raw:
    """One row per size class of messages."""
    columns = [
        Column("Message size", numeric=False),
        Column("Count"),
        *(Column(label) for label in QUANTILES),
        Column("max"),
        *(Column(f"slowdown {label}", hint="Time / ideal time") for label in QUANTILES),
        Column("slowdown max"),
    ]
    names = np.array(SIZE_CLASSES)[size_class_indices(flows["size_bytes"].to_numpy())]
    rows = [
        [
            Cell(row["size_class"], row["size_bytes"]),
            _number(count_text(row["count"]), row["count"]),
            *(duration_cell(row[label]) for label in (*QUANTILES, "max")),
            *(_ratio(row["slowdown"][label]) for label in (*QUANTILES, "max")),
        ]
        for row in flow_groups(flows, pl.Series(names.tolist(), dtype=pl.String))
    ]
    return table(columns, rows)


def _ratio(value: float | None) -> Cell:
    return _number(MISSING if value is None else f"{value:.2f}", value)


def _share(part_ns: float | None, end_ns: int) -> float | None:
    return None if part_ns is None else part_ns / max(end_ns, 1)


def load_table(loads: pl.DataFrame, end_ns: int) -> tuple[Raw, str]:
    """The busiest link directions of `analysis.loads.link_loads`, and how even each tier is."""
    columns = [
        Column("From", numeric=False),
        Column("To", numeric=False),
        Column("Rate"),
        Column("Bytes", hint="Frames with FCS"),
        Column(
            "Mean",
            hint="Time that frames with preambles and gaps occupied the line / emulated time",
        ),
        Column("Peak", hint="Busiest sample interval"),
        Column("Paused", hint="Time paused by PFC / emulated time of the run"),
    ]
    rows = [
        [
            Cell(row["source"]),
            Cell(row["destination"]),
            _number(rate_text(row["rate_bps"]), row["rate_bps"]),
            _number(size_text(row["tx_bytes"]), row["tx_bytes"]),
            _number(share_text(row["mean_ratio"]), row["mean_ratio"]),
            _number(share_text(row["peak_ratio"]), row["peak_ratio"]),
            _number(share_text(_share(row["paused_ns"], end_ns)), row["paused_ns"]),
        ]
        for row in loads.head(LINK_LIMIT).iter_rows(named=True)
    ]
    balances = [
        f"{tier.tier}: largest/mean {tier.max_over_mean:.2f}, Jain's index {tier.jain_index:.3f} "
        f"over {tier.directions} directions"
        for tier in tier_balances(loads)
    ]
    note = f"The busiest {len(rows)} of {len(loads)} link directions. Balance of the bytes, "
    return table(columns, rows), note + "idle links included: " + "; ".join(balances) + "."


def link_event_table(
    events: Sequence[Mapping[str, Any]], ends: Sequence[Mapping[str, Any]] = ()
) -> Raw | None:
    """What happened to links on purpose, and when; None without events.

    `ends` are the changes at each end, where several agents carried the job.
    """
    if not events:
        return None
    columns = [
        Column("Time"),
        Column("Link", numeric=False),
        Column("What", numeric=False, hint="Avoided: the switches at it stopped using it"),
        Column("Rate", hint="Line rate from then on"),
    ]
    if ends:
        columns.append(Column("At its ends", numeric=False, hint="When it took effect at each"))
    rows = [
        [
            duration_cell(event["time_ns"]),
            Cell(event["link"]),
            Cell(event["happened"].replace("_", " ")),
            _number(rate_text(event["rate_bps"]), event["rate_bps"]),
            *([Cell(_at_ends(event, ends))] if ends else []),
        ]
        for event in events[:EVENT_LIMIT]
    ]
    return table(columns, rows)


def _at_ends(event: Mapping[str, Any], ends: Sequence[Mapping[str, Any]]) -> str:
    """The time of a change at each end of its link; empty for what switches learn of it."""
    found: dict[str, float] = {}
    for end in ends:
        if all(end[key] == event[key] for key in ("event", "link", "happened")):
            # Of a link that flaps the change that is meant is the nearest.
            known = found.get(end["end"], float("inf"))
            nearest = min(known, end["time_ns"], key=lambda time: abs(time - event["time_ns"]))
            found[end["end"]] = nearest
    return ", ".join(f"{name} {duration_text(time_ns)}" for name, time_ns in sorted(found.items()))


def late_ranks(collectives: pl.DataFrame) -> Raw | None:
    """Which ranks the others waited for, in how many collectives, and how long."""
    column = pl.col
    several = collectives.filter(column("straggler_rank").is_not_null() & (column("ranks") > 1))
    lateness = column("last_start_ns") - column("start_ns")
    waited = several.filter(lateness > 0)
    if waited.is_empty():
        return None
    late = (
        waited.with_columns(lateness.alias("lateness"))
        .group_by("straggler_rank")
        .agg(
            pl.len().alias("times"),
            column("lateness").median().alias("median"),
            column("lateness").max().alias("largest"),
        )
        .sort("times", "straggler_rank", descending=[True, False])
    )
    columns = [
        Column("Rank"),
        Column("Started last", hint="Collectives in which this rank was the last to start"),
        Column("Share", hint="Of all collectives with more than one rank"),
        Column("Median lateness", hint="Its start less the first start"),
        Column("Largest"),
    ]
    rows = [
        [
            _number(str(row["straggler_rank"]), row["straggler_rank"]),
            _number(count_text(row["times"]), row["times"]),
            _number(share_text(row["times"] / len(several)), row["times"]),
            duration_cell(row["median"]),
            duration_cell(row["largest"]),
        ]
        for row in late.head(16).iter_rows(named=True)
    ]
    return table(columns, rows)


def counter_table(counters: Mapping[str, Sequence[int]], names: Sequence[str]) -> Raw | None:
    """Counters of NICs or wires: the sum, and the one with most. Watermarks have no sum.

    `counters["nic"]` or `counters["link"]` are indices of `names`; None without counters.
    """
    members = counters.get("nic", counters.get("link", range(len(names))))
    rows = []
    for name, values in counters.items():
        if name in {"nic", "rank", "link", "end", "direction"} or len(values) == 0:
            continue
        total = sum(values)
        place = max(range(len(values)), key=values.__getitem__)
        where = f"{names[members[place]]} ({count_text(values[place])})" if total else ""
        is_watermark = name.startswith("max_")
        summed = _number("n/a", None) if is_watermark else _number(count_text(total), total)
        rows.append([Cell(name), summed, Cell(where)])
    if not rows:
        return None
    columns = [Column("Counter", numeric=False), Column("Sum"), Column("Most", numeric=False)]
    return table(columns, rows)

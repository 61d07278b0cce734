"""A comparison as rows of text, for the terminal and for the page alike."""

from collections.abc import Sequence

from metrics.compare.comparison import Comparison
from metrics.presentation import (
    MISSING,
    count_text,
    duration_text,
    kind_text,
    share_text,
    size_text,
)

__all__ = [
    "check_rows", "difference_rows", "ecmp_headings", "ecmp_rows", "error_headings", "error_rows",
    "queue_headings", "queue_rows", "total_rows",
]  # fmt: skip

Rows = list[list[str]]
_SIDES = ("first", "second")


def check_rows(comparison: Comparison) -> Rows:
    """Check, number compared, verdict."""
    return [
        [
            check.name,
            count_text(check.compared),
            "equal" if check.holds else f"{count_text(check.differing)} differ",
        ]
        for check in comparison.checks
    ]


def error_headings(names: Sequence[str]) -> list[str]:
    """Headings of `error_rows`."""
    medians = [f"{name} p50" for name in names]
    sizes = ["|error| p50", "|error| p95", "|error| p99"]
    return ["Collective", "Size", "Count", *medians, "median error", *sizes, "worst", "worst is"]


def error_rows(comparison: Comparison) -> Rows:
    """Completion-time errors per kind and size, and of the messages."""
    rows = list(comparison.errors)
    if comparison.flows is not None:
        rows.append(comparison.flows)
    return [
        [
            kind_text(str(row["kind"])),
            size_text(row["size_bytes"]) if row["size_bytes"] is not None else "all",
            count_text(row["count"]),
            duration_text(row["first_median_ns"]),
            duration_text(row["second_median_ns"]),
            signed_share(row["median_error_ratio"]),
            share_text(row["median_absolute_error_ratio"]),
            share_text(row["p95_absolute_error_ratio"]),
            share_text(row["p99_absolute_error_ratio"]),
            signed_share(row["worst_error_ratio"]),
            row["worst"],
        ]
        for row in rows
    ]


def signed_share(ratio: float | None) -> str:
    """Per cent with a sign; of differences that one decimal can't show three, or their bound."""
    if ratio is None:
        return MISSING
    percent = 100 * ratio
    if percent == 0:
        return "0.0 %"
    if abs(percent) >= 0.05:
        return f"{percent:+.1f} %"
    return f"{percent:+.3f} %" if abs(percent) >= 0.0005 else "within 0.001 %"


def total_rows(comparison: Comparison) -> Rows:
    """Totals side by side with the relative difference."""
    rows = []
    for name, first in comparison.totals[0].items():
        second = comparison.totals[1][name]
        known = first is not None and second is not None
        difference = (second - first) / first if known and first else None  # type: ignore[operator]
        same = known and first == second
        rows.append(
            [
                _title(name),
                _value(name, first),
                _value(name, second),
                "equal" if same else signed_share(difference),
            ]
        )
    return rows


def queue_headings(comparison: Comparison) -> list[str]:
    """Headings of `queue_rows`."""
    figures = ["max", "marks", *(["paused"] if _has_pauses(comparison) else [])]
    return ["Queue", "Priority", *(f"{name} {f}" for f in figures for name in comparison.names)]


def queue_rows(comparison: Comparison) -> Rows:
    """Watermarks and marks of the deepest switch queues; paused time if any was paused."""
    shown = [("max_depth_bytes", size_text), ("marked_packets", count_text)]
    if _has_pauses(comparison):
        shown.append(("paused_ns", duration_text))
    return [
        [
            f"{row['node']}:{row['port']}",
            str(row["priority"]),
            *(text(row[f"{side}_{figure}"]) for figure, text in shown for side in _SIDES),
        ]
        for row in comparison.queues
    ]


def _has_pauses(comparison: Comparison) -> bool:
    """One of the shown queues was paused."""
    return any(row[f"{side}_paused_ns"] for row in comparison.queues for side in _SIDES)


def ecmp_headings(names: Sequence[str]) -> list[str]:
    """Headings of `ecmp_rows`."""
    return ["Equal-cost ports", *(f"{name} largest/mean" for name in names),
            *(f"{name} expected" for name in names)]  # fmt: skip


def ecmp_rows(comparison: Comparison) -> Rows:
    """Largest load over mean of the most uneven groups, as measured and as the hash says."""
    figures = [
        f"{side}_{figure}"
        for figure in ("max_over_mean", "expected_max_over_mean")
        for side in ("first", "second")
    ]
    return [
        [f"{row['switch']} group {row['group']}", *(_balance(row[figure]) for figure in figures)]
        for row in comparison.ecmp
    ]


def _balance(ratio: float | None) -> str:
    """Largest over mean."""
    return MISSING if ratio is None else f"{ratio:.3f}"


def difference_rows(comparison: Comparison, limit: int = 30) -> Rows:
    """Settings that differ."""
    return [
        [path, left if left is not None else "not set", right if right is not None else "not set"]
        for path, left, right in comparison.differing[:limit]
    ]


def _title(name: str) -> str:
    """A figure's name without its unit, which stands with the value."""
    for unit in ("_ns", "_bytes", "_ratio"):
        name = name.removesuffix(unit)
    if name == "ecmp_max_over_mean":
        return "ECMP largest/mean load"
    named = {"emulated": "emulated time", "sent": "bytes sent", "link": "bytes on all links"}
    return named.get(name, name.replace("_", " ").replace("ecn", "ECN").replace("cnps", "CNPs"))


def _value(name: str, value: float | None) -> str:
    """A figure in the unit that its name has."""
    if name.endswith("_ns"):
        return duration_text(value)
    if name.endswith("_ratio"):
        return share_text(value)
    if name.endswith("over_mean"):
        return _balance(value)
    if name.endswith("queue_bytes"):
        return size_text(value)
    return count_text(value)

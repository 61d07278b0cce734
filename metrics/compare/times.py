"""How far completion times are apart: relative error of the second run against the first."""

from collections.abc import Mapping, Sequence
from typing import Any

import polars as pl

from metrics.analysis.quantiles import distribution
from metrics.records import RunRecords

__all__ = ["collective_errors", "flow_errors", "matched_collectives"]

_KEYS = ("instance", "iteration", "kind", "group", "size_bytes")


def matched_collectives(first: RunRecords, second: RunRecords) -> pl.DataFrame:
    """Collectives that completed in both, with `first_ns`, `second_ns` and `error_ratio`."""
    left, right = (
        records.collectives.filter(pl.col("completion_time_ns") > 0).select(
            *_KEYS, "ranks", "label", pl.col("completion_time_ns").alias(f"{name}_ns")
        )
        for name, records in (("first", first), ("second", second))
    )
    both = left.join(right.drop("ranks", "label"), on=_KEYS, maintain_order="left")
    error = (pl.col("second_ns") - pl.col("first_ns")) / pl.col("first_ns")
    return both.with_columns(error.alias("error_ratio"))


def collective_errors(matched: pl.DataFrame) -> list[dict[str, Any]]:
    """One row per kind and size, then one for each kind with several sizes, and one for all."""
    rows = [
        _row({"kind": kind, "size_bytes": size}, group)
        for (kind, size), group in matched.group_by("kind", "size_bytes")
    ]
    rows.sort(key=lambda row: (row["kind"], row["size_bytes"]))
    for (kind,), group in sorted(matched.group_by("kind"), key=lambda pair: str(pair[0][0])):
        if group["size_bytes"].n_unique() > 1:
            rows.append(_row({"kind": kind, "size_bytes": None}, group))
    if matched["kind"].n_unique() > 1:
        rows.append(_row({"kind": "all", "size_bytes": None}, matched))
    return rows


def flow_errors(first: RunRecords, second: RunRecords) -> dict[str, Any] | None:
    """Error of the flow completion times, matched by their place; None if that can't be done."""
    left, right = first.flows, second.flows
    keys = ["instance", "source_rank", "destination_rank", "size_bytes"]
    if len(left) == 0 or not left.select(keys).equals(right.select(keys), null_equal=True):
        return None
    both = pl.DataFrame(
        {"first_ns": left["completion_time_ns"], "second_ns": right["completion_time_ns"]}
    ).filter((pl.col("first_ns") > 0) & pl.col("second_ns").is_not_null())
    error = (pl.col("second_ns") - pl.col("first_ns")) / pl.col("first_ns")
    return _row({"kind": "messages", "size_bytes": None}, both.with_columns(error_ratio=error))


def _row(key: Mapping[str, Any], pairs: pl.DataFrame) -> dict[str, Any]:
    """Signed median, and quantiles of the size of the error."""
    errors = pairs["error_ratio"]
    sizes = distribution(errors.abs().to_numpy())
    worst = int(errors.abs().arg_max() or 0)
    signed = distribution(errors.to_numpy())
    return {
        **key,
        "count": len(pairs),
        "first_median_ns": _median(pairs["first_ns"]),
        "second_median_ns": _median(pairs["second_ns"]),
        "median_error_ratio": signed["p50"],
        "median_absolute_error_ratio": sizes["p50"],
        "p95_absolute_error_ratio": sizes["p95"],
        "p99_absolute_error_ratio": sizes["p99"],
        "worst_error_ratio": errors[worst] if len(errors) else None,
        "worst": str(pairs["label"][worst]) if "label" in pairs.columns and len(pairs) else "",
    }


def _median(values: Sequence[Any] | pl.Series) -> float | None:
    """Nearest-rank median, of a single value itself."""
    ordered = sorted(values)
    return float(ordered[(len(ordered) - 1) // 2]) if ordered else None

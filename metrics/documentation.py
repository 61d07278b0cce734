"""docs/metrics.md from the catalogue: `python -m metrics.documentation > docs/metrics.md`."""

from collections.abc import Iterable, Sequence

from metrics.catalogue import METRICS, Metric
from metrics.columns import TABLE_COLUMNS

__all__ = ["page"]

_INTRODUCTION = """\
# Metrics and records

Written by `python -m metrics.documentation`; a test checks that it is current.

Times are emulated unless they say wall. Quantiles are by nearest rank over pooled samples; a
quantile q is given only with at least 1 / (1 - q) samples (20 for p95, 100 for p99, 1000 for
p99.9), because with fewer it is just the largest one. Bandwidths are in 10^9 B/s and use the
factors of nccl-tests. Every ratio names its denominator.

## `/metrics` while a run lasts

`rankwire run LAB --metrics-port PORT` serves these to Prometheus. Labels are few: sizes and groups
come in classes, queues appear when they have held something. A dashboard for Grafana is in
`metrics/dashboards`.
"""
_RECORDS = """
## Tables of a run directory

`run.json` holds the resolved configuration, seed, provenance, counters and warnings. The tables are
Parquet: read them with Polars, DuckDB or pandas.

A [prediction by flows](fluid.md) (`"model": "fluid"` in `run.json`) has the same tables. What flows
don't have is null (`retransmitted_packets`, `marked_packets`, `cnps`, `paused_ns`) or has no rows
(queues, qps); bytes and packets of links are those that the messages' packets would have.
"""


def page() -> str:
    """The whole page."""
    parts = [_INTRODUCTION, _table(_METRIC_HEADINGS, map(_metric_row, METRICS)), _RECORDS]
    for name, columns in TABLE_COLUMNS.items():
        rows = ([f"`{column.name}`", column.unit, column.meaning] for column in columns)
        parts += [f"\n### {name}.parquet\n", _table(("Column", "Unit", "Meaning"), rows)]
    return "\n".join(parts)


_METRIC_HEADINGS = ("Name", "Type", "Unit", "Labels", "Meaning")


def _metric_row(metric: Metric) -> list[str]:
    meaning = metric.help
    if metric.denominator:
        meaning += f" Divided by: {metric.denominator}."
    labels = ", ".join(f"`{label}`" for label in metric.labels)
    return [f"`{metric.name}`", metric.kind, metric.unit, labels, meaning]


def _table(headings: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    """A Markdown table."""
    lines = [headings, ["---"] * len(headings), *rows]
    return "\n".join(f"| {' | '.join(line)} |" for line in lines) + "\n"


if __name__ == "__main__":
    print(page(), end="")

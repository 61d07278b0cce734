"""The table at the end of a run."""

import copy
from collections.abc import Callable

import numpy as np
from rich.console import Console

from metrics.records import RunRecords
from metrics.records.operations import NOT_DONE
from metrics.summary import summarise, summary_table
from tests.metrics.synthetic import moe_run

Record = Callable[..., RunRecords]


def text_of(records: RunRecords) -> str:
    console = Console(record=True, width=200)
    console.print(summary_table(summarise(records.collectives)))
    return console.export_text()


def test_figures_are_those_of_the_median(record: Record) -> None:
    """The bandwidth and the share of the ideal belong to the median time, exactly."""
    rows = summarise(record(moe_run()).collectives)
    assert [row.kind for row in rows] == ["all_reduce", "all_to_all"]
    for row in rows:
        assert row.count == 18
        assert row.p50_ns is not None
        assert row.algbw_GBps == row.size_bytes / row.p50_ns
        assert row.ideal_ns is not None
        assert row.percent_of_ideal == 100 * (row.ideal_ns / row.p50_ns)


def test_too_few_samples_are_not_available(record: Record) -> None:
    """18 samples: no p95."""
    assert "n/a" in text_of(record(moe_run()))
    assert summarise(record(moe_run(), "b").collectives)[0].p95_ns is None


def test_incomplete_collectives_are_counted_apart(record: Record) -> None:
    """What didn't complete has no time, but it is in the table."""
    run = copy.deepcopy(moe_run(ranks=4, iterations=1, layers=3))
    ops = run.engine["ops"]
    late = ops["end_ps"] > np.quantile(ops["end_ps"], 0.7)
    ops["end_ps"] = np.where(late, NOT_DONE, ops["end_ps"])
    records = record(run)
    assert sum(row.incomplete for row in summarise(records.collectives)) >= 1
    assert "incomplete" in text_of(records)

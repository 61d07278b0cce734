"""Comparison: equal runs agree whatever their times; counts, bytes and order are exact."""

import copy
from collections.abc import Callable

import numpy as np
import pytest
from rich.console import Console

from metrics.compare import Comparison, compare, comparison_tables, rows, write_comparison
from metrics.records import RunRecords
from metrics.records.operations import NOT_DONE
from tests.metrics.browser import rendered
from tests.metrics.synthetic import Run, moe_run

Record = Callable[..., RunRecords]


def stretched(run: Run, factor: float) -> Run:
    """The same run with all times multiplied."""
    other = copy.deepcopy(run)
    for name in ("start_ps", "end_ps"):
        times = other.engine["ops"][name].astype(np.float64) * factor
        other.engine["ops"][name] = times.astype(np.uint64)
    return other


def failing(comparison: Comparison) -> list[str]:
    """Names of the checks that don't hold."""
    return [check.name for check in comparison.checks if not check.holds]


def test_slower_is_not_different(record: Record) -> None:
    """A run that takes a tenth longer agrees, with errors of +10 %."""
    run = moe_run()
    result = compare(record(run, "a"), record(stretched(run, 1.1), "b", command="run"))
    assert result.agrees
    assert result.errors[-1]["kind"] == "all"
    assert result.errors[-1]["count"] == 36
    for row in result.errors:
        assert row["median_error_ratio"] == pytest.approx(0.1, abs=1e-4)
        assert row["worst_error_ratio"] == pytest.approx(0.1, abs=1e-4)
    assert result.flows is not None
    assert result.flows["median_error_ratio"] == pytest.approx(0.1, abs=1e-3)


def test_quantiles_of_errors_need_samples(record: Record) -> None:
    """18 collectives of a kind give a median error but no p95."""
    run = moe_run()
    result = compare(record(run, "a"), record(stretched(run, 2), "b"))
    assert result.errors[0]["count"] == 18
    assert result.errors[0]["p95_absolute_error_ratio"] is None
    assert result.errors[-1]["p95_absolute_error_ratio"] == pytest.approx(1.0, abs=1e-4)


def test_other_sizes_are_other_bytes(record: Record) -> None:
    """One message with one byte more is found, with ranks and both sums."""
    run, other = moe_run(), moe_run()
    send = int(np.flatnonzero(other.programs[2].kind == 0)[0])
    other.programs[2].size_bytes[send] += np.uint64(1)
    other.programs[3].size_bytes[other.programs[2].peer_op[send]] += np.uint64(1)
    result = compare(record(run, "a"), record(other, "b"))
    assert failing(result) == [
        "bytes of every collective",
        "messages and bytes from rank to rank",
        "order of messages from rank to rank per group",
    ]
    assert "instance 0" in result.checks[1].examples[0]
    assert "source_rank 2, destination_rank 3" in result.checks[2].examples[0]


def test_swapped_collectives_of_a_group_are_another_order(record: Record) -> None:
    """On one rank the second collective starts before the first."""
    run = moe_run(ranks=4, iterations=1, layers=1)
    other = copy.deepcopy(run)
    ops, program = other.engine["ops"], other.programs[1]
    mine = np.flatnonzero(ops["rank"] == 1)
    ops["start_ps"][mine[program.instance == 1]] = 5_000
    result = compare(record(run, "a"), record(other, "b"))
    assert failing(result) == [
        "order of collectives per rank and group",
        "order of messages from rank to rank per group",
    ]
    assert "rank 1, group world: instance [0:] [0, 1] / [0:] [1, 0]" in result.checks[3].examples[0]


def test_an_incomplete_run_has_other_counts(record: Record) -> None:
    """What didn't complete counts as different."""
    run = moe_run(ranks=4, iterations=1, layers=2)
    other = copy.deepcopy(run)
    ops = other.engine["ops"]
    late = ops["end_ps"] > np.median(ops["end_ps"])
    ops["end_ps"] = np.where(late, NOT_DONE, ops["end_ps"])
    result = compare(record(run, "a"), record(other, "b"))
    assert "collectives by kind and size" in failing(result)
    assert len(result.matched) < 4


def test_settings_that_differ_are_named(record: Record) -> None:
    """Paths and both values of what is not the same."""
    run = moe_run(ranks=4, iterations=1, layers=1)
    other = copy.deepcopy(run)
    other.config["transport"]["mtu_bytes"] = 1024
    result = compare(record(run, "a", seed=1), record(other, "b", seed=2))
    assert ("seed", "1", "2") in result.differing
    assert ("job.transport.mtu_bytes", "4096", "1024") in result.differing


def test_tables_and_json_have_the_same_verdict(record: Record) -> None:
    """Everything that is printed can be had as plain values."""
    run = moe_run()
    result = compare(record(run, "a"), record(stretched(run, 0.9), "b"))
    console = Console(record=True, width=200)
    for table in comparison_tables(result):
        console.print(table)
    text = console.export_text()
    assert "order of collectives per rank and group" in text
    assert "-10.0 %" in text
    plain = result.as_dict()
    assert plain["agrees"]
    assert plain["totals"]["first"]["sent_bytes"] == 2_520_000_000
    assert plain["queues"][0]["first_marked_packets"] > 0


@pytest.mark.browser
def test_a_browser_draws_both_distributions(record: Record) -> None:
    """Every chart of the page has both runs."""
    run = moe_run()
    result = compare(record(run, "a"), record(stretched(run, 1.2), "b", command="run"))
    page = write_comparison(result, result.second.directory / "compare.html")
    document, errors = rendered(page)
    assert errors == []
    assert 'data-charts-failed="0"' in document
    assert f'data-charts-drawn="{document.count("<figure")}"' in document
    assert "predict (n = 18)" in document
    assert "run (n = 18)" in document


@pytest.mark.parametrize(
    ("ratio", "text"),
    [
        (None, "n/a"), (0.0, "0.0 %"), (-0.1, "-10.0 %"), (0.0005, "+0.1 %"),
        (-0.0004, "-0.040 %"), (0.000006, "+0.001 %"), (-0.0000001, "within 0.001 %"),
    ],
)  # fmt: skip
def test_a_small_difference_is_never_shown_as_none(ratio: float | None, text: str) -> None:
    """No "-0.0 %": what one decimal can't show has three, or a bound."""
    assert rows.signed_share(ratio) == text

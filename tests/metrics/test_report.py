"""The report: self-contained, complete, honest about scaling, and drawn by a real browser."""

import json
import re
from collections.abc import Callable
from pathlib import Path

import numpy as np
import polars as pl
import pytest

from metrics import presentation
from metrics.records import RunRecords
from metrics.records.operations import NOT_DONE
from metrics.report import write_report
from metrics.report.charts import ranks
from metrics.report.charts.grid import time_grid
from metrics.report.figure import logarithmic
from metrics.report.tables import counter_table
from tests.metrics.browser import rendered
from tests.metrics.synthetic import moe_run

Record = Callable[..., RunRecords]


def page_of(records: RunRecords) -> str:
    return write_report(records.directory).read_text(encoding="utf-8")


def rows_of(markup: str) -> list[list[str]]:
    """The cells of every row of a table's body."""
    rows = re.findall(r"<tr>(.*?)</tr>", markup, re.DOTALL)
    return [cells for row in rows if (cells := re.findall(r"<td[^>]*>([^<]*)</td>", row))]


def without_library(page: str) -> str:
    """The page up to the chart library."""
    return page[: page.index("<script>/**")]


def test_the_page_refers_to_nothing_outside(record: Record) -> None:
    """No link, script, style, image or font of the page comes from elsewhere."""
    own = without_library(page_of(record(moe_run())))
    assert not re.findall(r"""(?:src|href)=["'](?!#)""", own)
    assert "@import" not in own
    assert "url(" not in own


def test_tables_show_quantiles_only_with_enough_samples(record: Record) -> None:
    """24 samples: a p95 and no p99."""
    page = page_of(record(moe_run(iterations=4)))
    row = page[page.index(">all-reduce, ring<") :]
    cells = re.findall(r"<td[^>]*>([^<]*)</td>", row[: row.index("</tr>")])
    # Group, ranks, size, count, then p50, p95, p99, p99.9 and max.
    assert cells[3] == "24"
    assert cells[4].endswith("µs")
    assert cells[6:8] == ["n/a", "n/a"]


def test_counters_are_summed_and_watermarks_are_not() -> None:
    counted = {"nic": [0, 1], "tx_bytes": [5, 7], "max_depth_bytes": [300, 200]}
    page = str(counter_table(counted, ["a", "b"]))
    rows = {row[0]: row[1:] for row in rows_of(page)}
    assert rows["tx_bytes"] == ["12", "b (7)"]
    assert rows["max_depth_bytes"] == ["n/a", "a (300)"]


def test_the_ideal_stands_beside_its_share(record: Record) -> None:
    """The formula with its numbers is on the page."""
    assert "= 49.019 GB/s" in page_of(record(moe_run()))


def test_scaled_sizes_are_announced_at_the_top(record: Record) -> None:
    """A banner above everything; without scaling there is none."""
    page = page_of(record(moe_run(), size_scale=0.01))
    assert "scaled by 0.01" in page[page.index('class="banners"') :]
    assert "scaled by 0.01" in page[page.index("@page { @top-left") :].split("}")[0]
    assert 'class="banner ' not in without_library(page_of(record(moe_run(), "b", size_scale=1.0)))


def test_wall_clock_settings_and_trace_handling_are_shown(record: Record) -> None:
    """Lateness per agent, sources of settings, what binding found."""
    agent = {
        "name": "agent-1", "nodes": ["host0", "leaf0"], "clock_offset_ns": -1500,
        "clock_uncertainty_ns": None, "lateness": {"p99_ns": 250_000, "events": 1000},
    }  # fmt: skip
    page = page_of(
        record(
            moe_run(),
            control={"agents": [agent]},
            settings={"DCQCN": {"rpg_ai_rate": [5, "mlx5"]}},
            binding_counts={"dangling_dependencies": 3},
            compilation={"scaled_sizes": 2, "algorithms": {"all_reduce/ring": 18}},
        )
    )
    for text in (
        "250.0 µs",
        "-1.500 µs",
        "rpg_ai_rate",
        "dangling dependencies",
        "all reduce/ring",
    ):
        assert text in page


def test_an_interrupted_run_is_reported_as_such(record: Record) -> None:
    """What didn't complete is counted, charts and tables stand."""
    run = moe_run(ranks=4, iterations=1, layers=2)
    ops = run.engine["ops"]
    late = ops["end_ps"] > np.median(ops["end_ps"])
    ops["end_ps"] = np.where(late, NOT_DONE, ops["end_ps"])
    page = page_of(record(run))
    assert "The run is incomplete" in page
    assert "incomplete</td>" in page


def test_a_run_without_anything_measured_has_a_report(record: Record) -> None:
    """No operation, no sample: a page without charts, no crash."""
    run = moe_run(ranks=2, iterations=1, layers=1)
    run.engine = {
        name: {column: values[:0] for column, values in table.items()}
        for name, table in run.engine.items()
        if name != "counters"
    }
    page = page_of(record(run))
    assert "No link has sent anything." in page


def test_names_from_traces_cannot_break_out(record: Record) -> None:
    """Labels are data: in HTML and inside the charts' JSON."""
    run = moe_run(ranks=2, iterations=1, layers=1)
    evil = "</script><script>alert(1)</script>"
    run.instances = run.instances.with_columns(
        pl.lit(evil).alias("label"), pl.lit(evil).alias("group")
    )
    own = without_library(page_of(record(run, lab=evil)))
    assert "<script>alert" not in own


def test_the_timeline_is_capped_and_says_so(
    record: Record, monkeypatch: pytest.MonkeyPatch
) -> None:
    """With more spans than the cap the longest are drawn, and the note has both numbers."""
    monkeypatch.setattr(ranks, "SPAN_LIMIT", 100)
    records = record(moe_run())
    chart = ranks.rank_timeline(records.timeline, records.run["emulated_ns"])
    assert chart is not None
    assert chart.note.startswith("100 of 432 spans")


def test_the_grid_keeps_the_mean_of_merged_samples() -> None:
    """Four samples into two bins: each bin has the time-weighted sum of its two."""
    series = pl.DataFrame({"time_ns": [10, 20, 30, 40], "interval_ns": [10] * 4})
    grid = time_grid(series, 2)
    columns = grid.index(series["time_ns"].to_numpy(), series["interval_ns"].to_numpy())
    sums = grid.sums(np.zeros(4, np.int64), 1, columns, np.array([1.0, 2.0, 3.0, 4.0]))
    assert sums.tolist() == [[3.0, 7.0]]


@pytest.mark.parametrize(
    ("values", "step"),
    [
        ([20.0, 20.0], "D1"),
        ([20.0, 60.0], "D1"),
        ([20.0, 90.0], "D2"),
        ([0.0, 1.0, 900.0], "D2"),
        ([1.0, 1000.0], 1),
        ([0.0], "D1"),
    ],
)
def test_a_logarithmic_axis_has_numbers_for_its_span(values: list[float], step: int | str) -> None:
    assert logarithmic("time", np.array(values))["dtick"] == step


@pytest.mark.parametrize(
    ("value", "text"),
    [(None, "n/a"), (0, "0 ns"), (999, "999.0 ns"), (1234, "1.234 µs"), (56_780_000, "56.78 ms")],
)
def test_durations_have_four_digits(value: float | None, text: str) -> None:
    assert presentation.duration_text(value) == text


@pytest.mark.browser
def test_a_browser_draws_every_chart_without_an_error(record: Record) -> None:
    """Chromium, offline: all figures have a drawing, the script reports no failure."""
    page = write_report(record(moe_run(iterations=4), size_scale=0.5).directory)
    document, errors = rendered(page)
    figures = document.count("<figure")
    assert figures >= 9
    assert errors == []
    assert 'data-finished="yes"' in document
    assert f'data-charts-drawn="{figures}"' in document
    assert 'data-charts-failed="0"' in document
    assert document.count('class="main-svg"') >= figures
    assert len(re.findall(r'<path class="js-line"', document)) > 20


@pytest.mark.browser
def test_the_table_of_collectives_fits_a_small_screen(record: Record) -> None:
    """1240 pixels wide, with every quantile given: no column is cut off."""
    page = write_report(record(moe_run(iterations=200, ranks=2, layers=6)).directory)
    measure = (
        "<script>for (const box of document.querySelectorAll('#section-0 .scroll'))"
        " box.dataset.hiddenPx = box.scrollWidth - box.clientWidth;</script>"
    )
    page.write_text(page.read_text(encoding="utf-8") + measure, encoding="utf-8")
    document, _ = rendered(page, width_px=1240)
    table = document[document.index('id="section-0"') : document.index('id="section-1"')]
    assert ">n/a<" not in table
    assert re.findall(r'data-hidden-px="(\d+)"', table) == ["0"]


def test_the_charts_are_valid_json(record: Record) -> None:
    """Every figure is a document of its own, without NaN literals."""
    page = without_library(page_of(record(moe_run())))
    documents = re.findall(r'<script type="application/json">(.*?)</script>', page, re.DOTALL)
    assert all(set(json.loads(text)) == {"data", "layout"} for text in documents)


def test_writing_twice_gives_the_same_page(record: Record, tmp_path: Path) -> None:
    """The report depends on the records only."""
    records = record(moe_run())
    assert page_of(records) == page_of(records)
    assert (tmp_path / "run" / "report.html").exists()

"""The documentation and the dashboards name what exists, and nothing else."""

import json
import re
from collections.abc import Callable
from pathlib import Path

import pytest

from metrics.catalogue import METRICS, series_names
from metrics.columns import TABLE_COLUMNS
from metrics.documentation import page
from metrics.records import RunRecords
from tests.metrics.synthetic import moe_run

ROOT = Path(__file__).resolve().parents[2]
SERIES = {name for metric in METRICS for name in series_names(metric)}
DASHBOARDS = sorted((ROOT / "metrics" / "dashboards").glob("*.json"))


def test_the_page_of_the_metrics_is_current() -> None:
    """docs/metrics.md is what the catalogue says; `python -m metrics.documentation` writes it."""
    assert (ROOT / "docs" / "metrics.md").read_text(encoding="utf-8") == page()


@pytest.mark.parametrize("table", TABLE_COLUMNS)
def test_every_column_of_a_table_is_described(
    record: Callable[..., RunRecords], table: str
) -> None:
    """Names and order of the written columns."""
    written = getattr(record(moe_run(ranks=2, iterations=1, layers=1)), table).columns
    assert [column.name for column in TABLE_COLUMNS[table]] == written


@pytest.mark.parametrize("path", DASHBOARDS, ids=lambda path: path.name)
def test_a_dashboard_names_only_series_that_exist(path: Path) -> None:
    """Every name in an expression is a series of the catalogue, and most of them are used."""
    dashboard = json.loads(path.read_text(encoding="utf-8"))
    text = json.dumps([panel.get("targets", []) for panel in dashboard["panels"]])
    used = set(re.findall(r"rankwire_[a-z0-9_]+", text))
    assert used
    assert used <= SERIES


@pytest.mark.parametrize("path", DASHBOARDS, ids=lambda path: path.name)
def test_a_dashboard_uses_only_labels_of_its_metrics(path: Path) -> None:
    """Legends and groupings name labels of the catalogue."""
    labels = {label for metric in METRICS for label in metric.labels} | {"quantile", "le"}
    dashboard = json.loads(path.read_text(encoding="utf-8"))
    for panel in dashboard["panels"]:
        for target in panel.get("targets", []):
            assert set(re.findall(r"{{(\w+)}}", target["legendFormat"])) <= labels
            assert set(re.findall(r"by \((\w+)\)", target["expr"])) <= labels


@pytest.mark.parametrize("path", DASHBOARDS, ids=lambda path: path.name)
def test_panels_do_not_overlap(path: Path) -> None:
    """Every cell of the grid belongs to one panel, ids are unique."""
    panels = json.loads(path.read_text(encoding="utf-8"))["panels"]
    cells = [
        (x, y)
        for panel in panels
        for x in range(panel["gridPos"]["x"], panel["gridPos"]["x"] + panel["gridPos"]["w"])
        for y in range(panel["gridPos"]["y"], panel["gridPos"]["y"] + panel["gridPos"]["h"])
    ]
    assert len(cells) == len(set(cells))
    assert len({panel["id"] for panel in panels}) == len(panels)

"""Series per port and priority, their resolution, and warnings about what switches dropped."""

import polars as pl
import pytest

from metrics.analysis.bandwidth import PREAMBLE_AND_GAP_BYTES
from metrics.records import RunRecords
from metrics.records.switch_findings import switch_findings
from metrics.report import write_report
from metrics.report.charts.ports import port_series
from metrics.report.facts import run_facts
from tests.metrics.test_flow_paths import recorded


@pytest.fixture(scope="module")
def records(tmp_path_factory: pytest.TempPathFactory) -> RunRecords:
    """An incast sampled every microsecond, with fewer samples than that takes."""
    return recorded(
        tmp_path_factory.mktemp("incast"), "single-switch", "incast,repeats=1",
        "telemetry.sample_interval_ns=1000", "telemetry.max_samples=512",
    )  # fmt: skip


def test_priorities_of_a_port_add_up_to_its_link(records: RunRecords) -> None:
    """Frames and bytes of all priorities, NICs' data included; pauses alone are in no queue."""
    of_queues = records.queues.group_by("link", "is_switch").agg(
        pl.col("tx_bytes", "tx_packets").sum()
    )
    pauses = records.flow_links.filter(pl.col("source_rank").is_null())
    queued = of_queues.cast({"link": pl.String}).select(pl.col("tx_bytes", "tx_packets").sum())
    sent = records.links.select(pl.col("tx_bytes", "tx_packets").sum())
    unqueued = pauses.select(pl.col("tx_bytes", "tx_packets").sum())
    assert (sent - unqueued).rows() == queued.rows()


def test_the_utilisation_of_a_priority_is_the_time_of_its_frames(records: RunRecords) -> None:
    """Bytes with preambles and gaps over what the interval carries; never above 1."""
    rates = dict(records.links.select(pl.col("link").cast(pl.String), "rate_bps").unique().rows())
    row = records.queues.filter(pl.col("utilisation_ratio") > 0.1).row(0, named=True)
    line_bytes = row["tx_bytes"] + PREAMBLE_AND_GAP_BYTES * row["tx_packets"]
    carried = rates[row["link"]] * row["interval_ns"] / 8e9
    assert row["utilisation_ratio"] == pytest.approx(min(line_bytes / carried, 1))
    assert records.queues["utilisation_ratio"].max() <= 1  # type: ignore[operator]


def test_the_resolution_is_said_with_what_was_asked_for(records: RunRecords) -> None:
    """512 samples of 1 us are not enough: the interval has doubled, and the report says it."""
    interval_ns = records.run["sample_interval_ns"]
    assert interval_ns == records.queues["interval_ns"].max() > 1000
    assert "1.000 µs were asked for" in run_facts(records.run)["Series"]


def test_every_queue_of_the_list_has_the_same_lines(records: RunRecords) -> None:
    """One is visible at first; each choice shows one queue's lines alone."""
    chart = port_series(records.queues)
    assert chart is not None
    (menu,) = chart.layout["updatemenus"]
    count = len(menu["buttons"])
    per_queue = len(chart.data) // count
    assert [trace["visible"] for trace in chart.data].count(True) == per_queue
    for number, button in enumerate(menu["buttons"]):
        visible = button["args"][0]["visible"]
        assert [place for place, shows in enumerate(visible) if shows] == list(
            range(number * per_queue, (number + 1) * per_queue)
        )
    first = menu["buttons"][0]["label"]
    deepest = records.queues.sort("marked_packets", "max_depth_bytes")["node"].last()
    assert first.startswith(f"{deepest}:")


def test_the_report_has_the_counters_of_switch_ports(records: RunRecords) -> None:
    """With the port that counted most."""
    text = write_report(records).read_text(encoding="utf-8")
    assert "Switch ports" in text
    assert "headroom_dropped_packets" in text


def test_what_a_sound_fabric_never_counts_is_a_warning() -> None:
    """One sentence for each counter that is not 0, with the port that has most."""
    ports = {
        "switch": [0, 0, 1], "port": [4, 7, 2], "headroom_dropped_packets": [0, 3, 2],
        "storms": [0, 0, 0], "expired_packets": [1, 0, 0],
    }  # fmt: skip
    headroom, expired = switch_findings(ports, ["leaf0", "spine0"])
    assert headroom.startswith("5 lossless packets")
    assert "(most at leaf0:7: 3)" in headroom
    assert "the routes have a loop" in expired
    assert "leaf0:4" in expired

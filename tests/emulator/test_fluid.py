"""A prediction by flows has the records of packets, and says what it leaves out."""

import json
from collections.abc import Callable
from pathlib import Path

import numpy as np
import polars as pl
import pytest

from emulator.cli import main
from emulator.job import JobRequest, build_job
from emulator.predict import predict
from metrics.compare import compare
from metrics.records import RunRecords, load

Predicted = Callable[..., RunRecords]
PACKET_COLUMNS = ("retransmitted_packets", "marked_packets", "cnps")


@pytest.fixture
def predicted(tmp_path: Path) -> Predicted:
    """Run `predict` by a model; its records."""

    def run(model: str, *arguments: str) -> RunRecords:
        out = tmp_path / model
        line = ["predict", *arguments, "--model", model, "--out", str(out), "--quiet"]
        assert main(line) == 0
        return load(out)

    return run


def test_what_flows_don_t_have_is_null_or_empty_and_the_rest_is_there(predicted: Predicted) -> None:
    records = predicted("fluid", "loopback-clos")
    for table in (records.flows, records.collectives):
        assert all(table[column].null_count() == len(table) for column in PACKET_COLUMNS)
        assert table["completion_time_ns"].null_count() == 0
    assert records.queues.is_empty()
    assert records.qps.is_empty()
    assert records.links["paused_ns"].null_count() == len(records.links) > 0
    assert records.run["byte_conservation"]["holds"]
    assert records.paths["arrives"].all()


def test_report_warnings_and_run_file_say_what_the_model_is(
    predicted: Predicted, capsys: pytest.CaptureFixture[str]
) -> None:
    records = predicted("fluid", "loopback-clos")
    assert "Predicted by flows that share links max-min fairly" in capsys.readouterr().out
    page = (records.directory / "report.html").read_text()
    for text in ("Fluid prediction on loopback-clos", "not modelled", "under dcqcn: median"):
        assert text in page
    assert records.run["model"] == "fluid"
    assert 0 < records.run["model_error"]["median_absolute_error_ratio"] < 1


def test_flows_and_packets_are_compared_like_any_two_runs(predicted: Predicted) -> None:
    arguments = ("loopback-clos", "--profile", "all-to-all")
    comparison = compare(predicted("packets", *arguments), predicted("fluid", *arguments))
    assert comparison.agrees
    assert comparison.names == ("packets", "fluid")
    assert ("model", "packets", "fluid") in list(comparison.differing)
    assert comparison.totals[1]["largest_queue_bytes"] is None
    assert any("max-min" in text for text in comparison.explanations)


def test_where_nothing_queues_flows_take_the_time_of_packets(predicted: Predicted) -> None:
    """Rings and pairwise exchanges on one switch: within 1 %."""
    for profile in ("all-reduce,repeats=2", "permutation"):
        arguments = ("single-switch", "--profile", profile)
        sides = [predicted(model, *arguments) for model in ("packets", "fluid")]
        times = [side.collectives["completion_time_ns"].to_numpy() for side in sides]
        np.testing.assert_allclose(times[1], times[0], rtol=0.01)
        for side in sides:
            for path in side.directory.iterdir():
                path.unlink()


def test_paths_are_those_of_packets(predicted: Predicted) -> None:
    arguments = ("loopback-clos", "--profile", "permutation")
    sides = [predicted(model, *arguments).paths for model in ("packets", "fluid")]
    keys = ["source_rank", "destination_rank", "source_port", "links"]
    data = [side.filter("is_data").select(keys).sort(keys[:3]) for side in sides]
    assert data[0].equals(data[1])


def test_the_same_job_gives_the_same_records_bit_for_bit() -> None:
    job = build_job(JobRequest("loopback-clos", model="fluid"))
    first, second = predict(job), predict(job)
    for table in ("ops", "links"):
        for name, column in first[table].items():
            np.testing.assert_array_equal(column, second[table][name], f"{table}.{name}")


def test_a_capture_of_flows_is_refused(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    out = tmp_path / "run"
    line = ["predict", "single-switch", "--model", "fluid", "--capture", "*", "--out", str(out)]
    assert main([*line, "--quiet"]) == 2
    assert "which has no frames" in capsys.readouterr().err
    assert not out.exists()


def test_events_of_links_come_as_among_packets(predicted: Predicted) -> None:
    """The lab's uplink fails as its first all-reduce begins, and another slows down later."""
    sides = [predicted(model, "link-flap") for model in ("packets", "fluid")]
    told = [
        [(row["link"], row["happened"], row["rate_bps"]) for row in side.run["link_events"]]
        for side in sides
    ]
    assert told[0] == told[1]
    assert [happened for _, happened, _ in told[1]] == [
        "rate", "down", "avoided", "up", "used_again",
    ]  # fmt: skip
    assert sides[1].run["byte_conservation"]["holds"]
    assert sides[1].collectives["complete"].all()
    crossed = sides[1].flow_links.filter(link="leaf0-spine0")["tx_bytes"].sum()
    carried = sides[1].links.filter(link="leaf0-spine0")["tx_bytes"].sum()
    assert abs(crossed - carried) < 0.01 * carried


def test_a_link_that_stays_down_under_flows_is_named(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    event = 'events=[{"links": "host0-*", "at_ns": 1000, "change": "down"}]'
    line = ["predict", "loopback-clos", "--model", "fluid", "--set", event]
    assert main([*line, "--out", str(tmp_path / "run"), "--quiet"]) == 1
    assert "link host0-leaf0 is down since 1.000 us" in capsys.readouterr().err


def test_impairments_and_spread_packets_are_warned_of(predicted: Predicted) -> None:
    rule = 'impairments=[{"links": "*", "loss_ratio": 0.01}]'
    records = predicted(
        "fluid", "loopback-clos", "--set", rule, "--set", "switches.path_selection={mode: packet}",
        "--set", "transport.loss_recovery=selective_repeat",
    )  # fmt: skip
    warnings = " ".join(records.run["warnings"])
    assert "none of the lab's impairments" in warnings
    assert "equal share of every equal-cost path" in warnings


def test_a_sweep_by_flows_ranks_by_times(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    spec = tmp_path / "sweep.yaml"
    spec.write_text(
        "name: flows\nlab: single-switch\nprofile: all-to-all\nmodel: fluid\n"
        "grid: {transport.qps_per_peer: [1, 2]}\nrank_by: all_to_all.p50_ns\n"
    )
    out = tmp_path / "out"
    assert main(["sweep", str(spec), "--out", str(out), "--json", "--quiet", "--jobs", "1"]) == 0
    assert json.loads(capsys.readouterr().out)["failed"] == 0
    assert pl.read_parquet(out / "sweep.parquet")["all_to_all.p50_ns"].null_count() == 0


def test_a_real_run_by_flows_is_refused(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    spec = tmp_path / "sweep.yaml"
    spec.write_text(
        "name: flows\nlab: single-switch\nmode: run\nmodel: fluid\n"
        "grid: {transport.qps_per_peer: [1, 2]}\n"
    )
    assert main(["sweep", str(spec)]) == 2
    assert "is fluid, but the mode is run" in capsys.readouterr().err

"""Records: tables of a run directory, byte conservation, interrupted runs, unreadable input."""

import json
from dataclasses import replace
from pathlib import Path

import numpy as np
import polars as pl
import pytest

from dataplane.errors import InputError, RunError
from metrics.compare import compare
from metrics.records import RunRecords, load, verify_bytes, write_records
from metrics.records.findings import findings
from metrics.records.operations import NOT_DONE
from metrics.report import write_report
from tests.metrics.synthetic import Run, moe_run


def write(directory: Path, run: Run) -> RunRecords:
    """Write a synthetic run."""
    return write_records(
        directory,
        run={"command": "predict", "seed": 1},
        programs=run.programs,
        instances=run.instances,
        config=run.config,
        engine=run.engine,
        row_names=lambda rank, rows: [f"r{rank}n{row}" for row in rows],
    )


def test_a_collective_lasts_from_its_first_start_to_its_last_end(tmp_path: Path) -> None:
    """Completion time is the largest end less the smallest start over all ranks and operations."""
    run = moe_run(ranks=4, iterations=1, layers=1)
    ops = run.engine["ops"]
    mine = np.concatenate([program.instance == 0 for program in run.programs])
    records = write(tmp_path, run)
    row = records.collectives.row(0, named=True)
    assert row["start_ns"] == ops["start_ps"][mine].min() // 1000
    assert row["end_ns"] == ops["end_ps"][mine].max() // 1000
    assert row["completion_time_ns"] == row["end_ns"] - row["start_ns"]


def test_bandwidths_and_ideal_are_consistent(tmp_path: Path) -> None:
    """The algbw is S / t in GB/s, busbw has the factor, the ideal ratio is ideal over measured."""
    row = write(tmp_path, moe_run()).collectives.row(0, named=True)
    assert row["algbw_GBps"] == pytest.approx(8_000_000 / row["completion_time_ns"])
    assert row["busbw_GBps"] == pytest.approx(row["algbw_GBps"] * 1.75)
    assert row["ideal_ratio"] == pytest.approx(row["ideal_ns"] / row["completion_time_ns"])


def test_a_late_rank_is_the_straggler_and_is_left_out_of_the_second_time(tmp_path: Path) -> None:
    """The rank that starts last is named; the time after its start is shorter by its lateness."""
    run = moe_run(ranks=4, iterations=1, layers=1)
    row = write(tmp_path, run).collectives.row(0, named=True)
    lateness = row["last_start_ns"] - row["start_ns"]
    assert lateness > 0
    assert row["completion_time_after_last_arrival_ns"] == row["completion_time_ns"] - lateness
    starts = [
        run.engine["ops"]["start_ps"][run.engine["ops"]["rank"] == rank][program.instance == 0]
        for rank, program in enumerate(run.programs)
    ]
    assert row["straggler_rank"] == int(np.argmax([start.min() for start in starts]))


def test_a_flow_joins_both_ends_of_a_message(tmp_path: Path) -> None:
    """Sizes, the receiver's arrival and its marks stand in the sender's row."""
    run = moe_run(ranks=4, iterations=1, layers=1)
    records = write(tmp_path, run)
    flow = records.flows.filter(pl.col("source_rank") == 2).row(0, named=True)
    sender, receiver = run.programs[2], run.programs[3]
    op = int(np.flatnonzero(sender.kind == 0)[0])
    ops = run.engine["ops"]
    there = np.flatnonzero(ops["rank"] == 3)[int(sender.peer_op[op])]
    assert flow["destination_rank"] == receiver.rank
    assert flow["arrival_ns"] == ops["end_ps"][there] // 1000
    assert flow["marked_packets"] == ops["marked_packets"][there]
    assert flow["slowdown"] == pytest.approx(
        flow["completion_time_ns"] / flow["ideal_ns"], rel=1e-4
    )


def test_conserved_bytes_are_recorded(tmp_path: Path) -> None:
    """Sent, received, expected and the NICs' payload agree."""
    records = write(tmp_path, moe_run())
    check = records.run["byte_conservation"]
    assert check["holds"]
    assert check["sent_bytes"] == check["nic_received_bytes"] == 2_520_000_000
    verify_bytes(records)


def test_lost_bytes_fail_the_run_and_keep_the_records(tmp_path: Path) -> None:
    """A NIC that accepted fewer bytes than were sent is a violation, with the sums named."""
    run = moe_run()
    run.engine["counters"]["nics"]["data_payload_bytes_received"][3] -= np.uint64(1)
    records = write(tmp_path, run)
    with pytest.raises(RunError, match="nic_received_bytes 2519999999"):
        verify_bytes(records)
    assert any("not conserved" in warning for warning in records.run["warnings"])


def test_an_interrupted_run_keeps_what_didnt_complete_without_an_end(tmp_path: Path) -> None:
    """Operations after the interruption are not done; their collectives are kept."""
    run = moe_run(ranks=4, iterations=1, layers=2)
    ops = run.engine["ops"]
    cut = int(np.median(ops["end_ps"]))
    ops["start_ps"] = np.where(ops["start_ps"] > cut, NOT_DONE, ops["start_ps"])
    ops["end_ps"] = np.where(ops["end_ps"] > cut, NOT_DONE, ops["end_ps"])
    records = write(tmp_path, run)
    last = records.collectives.row(-1, named=True)
    assert not last["complete"]
    assert last["end_ns"] is None
    assert last["completion_time_ns"] is None
    assert records.run["byte_conservation"]["holds"]
    assert any("didn't complete" in warning for warning in records.run["warnings"])


def test_operations_that_the_engine_never_mentions_are_not_done(tmp_path: Path) -> None:
    """An engine that reports nothing leaves a directory with empty times."""
    run = moe_run(ranks=2, iterations=1, layers=1)
    run.engine["ops"] = {name: values[:0] for name, values in run.engine["ops"].items()}
    records = write(tmp_path, run)
    assert records.collectives["complete"].to_list() == [False, False]
    assert records.run["ops_done"] == 0


def test_queue_pairs_that_failed_are_warnings(tmp_path: Path) -> None:
    """A failure names queue pair, ranks, time and reason."""
    run = moe_run(ranks=2, iterations=1, layers=1)
    run.engine["failures"] = {
        "time_ps": np.array([5_000_000], np.uint64),
        "rank": np.array([0], np.uint32),
        "peer_rank": np.array([1], np.uint32),
        "qp": np.array([17], np.uint32),
        "op": np.array([3], np.uint32),
        "reason": ["no progress after 7 time-outs"],
    }
    warning = "queue pair 17 of rank 0 to rank 1 failed at 5.000 us: no progress after 7 time-outs"
    warning += "; its message is operation 3"
    assert warning in write(tmp_path, run).run["warnings"]


def test_a_late_wall_clock_is_a_warning_that_names_a_fitting_dilation(tmp_path: Path) -> None:
    """More than 2 % of the median completion time: the dilation that would bring it to 2 %."""
    run = moe_run()
    records = write(tmp_path / "a", run)
    median_ns = records.collectives["completion_time_ns"].median()
    assert isinstance(median_ns, float)

    def warnings(late_ns: float) -> list[str]:
        agent = {"name": "agent-0", "nodes": [], "lateness": {"frame_p999_ns": int(late_ns)}}
        facts = {"time_dilation": 100, "control": {"agents": [agent]}}
        return list(findings(facts, records.collectives, {}, []))

    assert warnings(100 * median_ns * 0.01) == []
    (text,) = warnings(100 * median_ns * 0.09)
    assert "too slow for time dilation 100" in text
    assert "9.0 % of the median completion time" in text
    assert text.endswith("try time dilation 500")


def test_a_late_wall_clock_on_a_real_network_is_told_by_its_events(tmp_path: Path) -> None:
    """Frames have no time there to be late against; they leave when events are handled."""
    records = write(tmp_path / "a", moe_run())
    median_ns = records.collectives["completion_time_ns"].median()
    assert isinstance(median_ns, float)

    def warnings(late_ns: float) -> list[str]:
        lateness = {"frame_p999_ns": 0, "p99_ns": int(late_ns)}
        facts = {
            "time_dilation": 100,
            "ports": {"host0": {"driver": "udp"}},
            "control": {"agents": [{"name": "agent-0", "nodes": [], "lateness": lateness}]},
        }
        return list(findings(facts, records.collectives, {}, []))

    assert warnings(100 * median_ns * 0.01) == []
    (text,) = warnings(100 * median_ns * 0.09)
    assert "1 event of 100 was handled, and what it sent left, more than" in text
    assert text.endswith("try time dilation 500, of the network too, or larger messages")


def test_losses_on_the_wires_are_warnings(tmp_path: Path) -> None:
    """Datagrams that the kernel dropped are not the fabric's doing."""
    run = moe_run(ranks=2, iterations=1, layers=1)
    run.engine["counters"]["wires"] = {
        "link": np.array([0, 1]),
        "datagrams_sent": np.array([10, 10]),
        "receive_overflows": np.array([3, 4]),
    }
    warning = "7 datagrams of the wires were lost in a receive buffer"
    assert warning in write(tmp_path, run).run["warnings"]


def test_utilisation_is_busy_time_over_the_interval(tmp_path: Path) -> None:
    """A link that sent half of the time is used by half; ends and rate are named."""
    run = moe_run(ranks=2, iterations=1, layers=1)
    links = {name: values[:1] for name, values in run.engine["links"].items()}
    links["interval_ps"], links["busy_ps"] = np.array([10_000_000]), np.array([5_000_000])
    run.engine["links"] = links
    row = write(tmp_path, run).links.row(0, named=True)
    assert row["utilisation_ratio"] == pytest.approx(0.5)
    assert (row["source"], row["destination"], row["rate_bps"]) == ("host0", "leaf0:0", 4e11)


def test_the_timeline_names_computations_and_collectives(tmp_path: Path) -> None:
    """One span per computation and per collective on a rank."""
    timeline = write(tmp_path, moe_run(ranks=2, iterations=2, layers=1)).timeline
    first = timeline.filter(pl.col("rank") == 1)
    assert first["kind"].to_list() == ["compute", "all_reduce", "all_to_all"] * 2
    assert first["name"].to_list()[:2] == ["r1n0", "all_reduce#1"]


def test_the_mean_time_shares_add_up_to_the_run(tmp_path: Path) -> None:
    """Computed, exposed and idle time of a rank together are the run."""
    run = write(tmp_path, moe_run()).run
    shares = run["rank_time_shares"]
    parts = ("compute_ns", "exposed_communication_ns", "idle_ns")
    assert sum(shares[part] for part in parts) == pytest.approx(run["emulated_ns"], abs=2)
    assert shares["exposed_communication_ns"] <= shares["communication_ns"]


def test_a_million_flows_take_seconds(tmp_path: Path) -> None:
    """The writer is vectorised: a large program costs no Python per operation."""
    run = moe_run(ranks=2, iterations=1, layers=1)
    copies = 170_000
    count = len(run.programs[0].kind)
    shift = np.repeat(np.arange(copies) * count, count).astype(np.uint32)
    run.programs = [
        replace(
            program,
            **{
                name: np.tile(getattr(program, name), copies)
                for name in ("kind", "peer", "size_bytes", "duration_ps", "lane", "instance", "row")
            },
            peer_op=np.tile(program.peer_op, copies) + shift,
        )
        for program in run.programs
    ]
    size = copies * count
    ops = {
        name: np.concatenate([np.tile(values[:count], copies), np.tile(values[count:], copies)])
        for name, values in run.engine["ops"].items()
    }
    ops["op"] = np.tile(np.arange(size, dtype=np.uint32), 2)
    run.engine["ops"] = ops
    records = write(tmp_path, run)
    assert len(records.flows) == copies * sum((p.kind[:count] == 0).sum() for p in run.programs)


def test_loading_something_else_is_an_input_error(tmp_path: Path) -> None:
    """No directory, broken JSON, a newer format, a missing table: one problem with its file."""
    with pytest.raises(InputError, match="no such file"):
        load(tmp_path / "nothing")
    (tmp_path / "run.json").write_text("{", encoding="utf-8")
    with pytest.raises(InputError, match="can't be read"):
        load(tmp_path)
    (tmp_path / "run.json").write_text(json.dumps({"format": 99}), encoding="utf-8")
    with pytest.raises(InputError, match="format is 99"):
        load(tmp_path)
    (tmp_path / "run.json").write_text(json.dumps({"format": 1}), encoding="utf-8")
    with pytest.raises(InputError, match=r"flows\.parquet"):
        _ = load(tmp_path).flows


def test_a_directory_of_an_earlier_version_has_the_later_tables_empty(tmp_path: Path) -> None:
    """Paths, loads of equal-cost ports and pauses came later; the report does without."""
    write(tmp_path, moe_run(ranks=4, iterations=1, layers=1))
    for name in ("flow_links", "paths", "ecmp", "pauses", "adapters"):
        (tmp_path / f"{name}.parquet").unlink()
    records = load(tmp_path)
    assert [len(table) for table in (records.flow_links, records.paths)] == [0, 0]
    assert [len(table) for table in (records.ecmp, records.pauses)] == [0, 0]
    assert records.adapters.is_empty()
    text = write_report(records).read_text(encoding="utf-8")
    assert "Where the data went" not in text
    assert compare(records, records).agrees

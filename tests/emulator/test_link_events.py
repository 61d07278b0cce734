"""Links that go down, flap or change their rate: when, under both clocks, told in the records."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from dataplane.errors import InputError
from emulator.cli import main
from emulator.job import Job, JobRequest, build_job
from emulator.lab import load_lab
from emulator.predict import predict
from metrics.records import RunRecords, load

SMALL = ["--profile", "all-reduce,repeats=2", "--size-scale", "0.05", "--quiet"]
# What is lost with a link is sent again after 3 s of wall time in a run, not after 25 s.
SOON = ["--set", "transport.retransmission_timeout_ns=500000"]
UPLINK = "leaf0-spine0.*"
Played = Callable[..., tuple[int, RunRecords]]


@pytest.fixture
def played(tmp_path: Path) -> Played:
    """`run` or `predict` of a small job with these events: exit status and records."""

    def play(name: str, *events: str, lab: str = "loopback-clos") -> tuple[int, RunRecords]:
        out = tmp_path / name
        arguments = [name, lab, *SMALL, *SOON, "--set", f"events=[{', '.join(events)}]"]
        status = main([*arguments, "--out", str(out)])
        return status, load(out)

    return play


def happened(records: RunRecords) -> list[tuple[str, str]]:
    return [(row["link"], row["happened"]) for row in records.run["link_events"]]


def built(*events: str, iterations: int = 1) -> Job:
    changes = (f"events=[{', '.join(events)}]",)
    request = JobRequest(
        "loopback-clos", changes, profile="all-reduce,repeats=2", iterations=iterations
    )
    return build_job(request)


def time_of_event_ps(engine: Any) -> int:
    return int(engine["link_events"]["time_ps"][0])


def test_a_flapping_uplink_costs_packets_and_no_byte_and_is_told(played: Played) -> None:
    flap = f"{{links: {UPLINK}, change: flap, at_ns: 20000, down_ns: 30000, repeat: 2}}"
    status, records = played("predict", flap)
    assert status == 0
    downs = [link for link, what in happened(records) if what == "down"]
    assert downs == ["leaf0-spine0.0", "leaf0-spine0.1"] * 2
    check = records.run["byte_conservation"]
    assert check["holds"]
    assert check["lost_with_links_packets"] > 0
    assert any("leaf0-spine0.0 went down 2 times" in text for text in records.run["warnings"])
    ports = records.run["counters"]["switch_ports"]
    assert sum(ports["link_down_packets"]) > 0
    assert sum(ports["dropped_packets"]) == 0
    report = (records.directory / "report.html").read_text()
    assert "Link events" in report
    assert "leaf0-spine0.0 and 1 more down" in report


def test_the_same_events_give_the_same_records_bit_for_bit() -> None:
    flap = f"{{links: {UPLINK}, change: flap, at_ns: 20000, down_ns: 300000, repeat: 3}}"
    first, second = predict(built(flap)), predict(built(flap))
    for table in ("ops", "links", "queues", "link_events"):
        for name, column in first[table].items():
            np.testing.assert_array_equal(column, second[table][name], f"{table}.{name}")


def test_a_collective_that_starts_or_ends_is_a_moment() -> None:
    rate = "change: rate, rate_gbps: 100"
    for index, moment in ((1, "start"), (0, "end")):
        which = f"{{kind: all_*, index: {index}, moment: {moment}}}"
        job = built(f"{{links: {UPLINK}, {rate}, at_collective: {which}}}")
        engine = predict(job)
        ops = engine["ops"]
        mine = np.concatenate([program.instance for program in job.programs]) == index
        first, last = ops["start_ps"][mine].min(), ops["end_ps"][mine].max()
        assert time_of_event_ps(engine) == (first if moment == "start" else last)


def test_a_node_of_a_rank_in_an_iteration_is_a_moment() -> None:
    plain = built(iterations=2)
    node = int(plain.source.workload.tables[3].id[0])
    where = f"{{rank: 3, node: {node}, iteration: 1, moment: end}}"
    event = f"{{links: {UPLINK}, change: rate, rate_gbps: 100, at_node: {where}, after_ns: 5}}"
    job = built(event, iterations=2)
    engine = predict(job)
    program = job.programs[3]
    row = int(np.flatnonzero(job.source.workload.tables[3].id == node)[0])
    ops = np.flatnonzero(program.row == row)
    later = ops[ops >= job.compiled.ops_per_iteration[3]]
    ends = engine["ops"]["end_ps"][engine["ops"]["rank"] == 3]
    assert time_of_event_ps(engine) == ends[later].max() + 5_000


def test_a_host_that_is_cut_off_for_good_ends_the_prediction_with_the_link_named(
    played: Played, capsys: pytest.CaptureFixture[str]
) -> None:
    status, records = played("predict", "{links: host3-leaf0, change: down, at_ns: 20000}")
    assert status == 1
    told = capsys.readouterr().err
    assert "link host3-leaf0 is down since 20.000 us" in told
    assert "rank 3" in told
    assert records.run["ops_done"] < records.run["ops_total"]


def test_an_event_whose_moment_never_comes_is_told(played: Played) -> None:
    status, records = played("predict", f"{{links: {UPLINK}, change: down, at_ns: 900000000}}")
    assert status == 0
    assert records.run["link_events"] == []
    assert any("event 0 of the lab changed nothing" in text for text in records.run["warnings"])


@pytest.mark.slow
def test_a_run_and_its_prediction_lose_the_same_link_and_keep_every_byte(played: Played) -> None:
    flap = "{links: host1-leaf0, change: flap, at_ns: 40000, down_ns: 20000}"
    for name in ("predict", "run"):
        status, records = played(name, flap)
        assert status == 0
        assert happened(records)[:1] == [("host1-leaf0", "down")]
        assert ("host1-leaf0", "up") in happened(records)
        assert [row["time_ns"] for row in records.run["link_events"]][:1] == [40_000]
        assert records.run["byte_conservation"]["holds"]
        assert records.run["byte_conservation"]["lost_with_links_packets"] > 0


def test_several_agents_change_a_link_at_one_time_after_a_moment_that_one_sees(
    tmp_path: Path,
) -> None:
    """Rank 0 is on one agent, and the link that changes is between the two."""
    event = (
        "{links: leaf0-spine0.0, change: rate, rate_gbps: 200, "
        "at_collective: {kind: all_reduce, moment: end}}"
    )
    placement = (
        "{one: [host0, host1, host2, host3, leaf0], "
        "two: [host4, host5, host6, host7, leaf1, spine0, spine1]}"
    )
    out = tmp_path / "run"
    arguments = ["--profile", "all-reduce,repeats=6", "--size-scale", "0.05", "--quiet"]
    for change in (f"events=[{event}]", f"agents={{placement: {placement}}}"):
        arguments += ["--set", change]
    assert main(["run", "loopback-clos", *arguments, "--out", str(out)]) == 0
    run = load(out).run
    (order,) = run["control"]["event_orders"]
    notice_ns = 250_000_000 // run["time_dilation"]
    assert order["base_ns"] - order["moment_ns"] == pytest.approx(notice_ns, rel=1e-3)
    ends = {row["end"].partition(":")[0]: row["time_ns"] for row in run["link_event_ends"]}
    assert set(ends) == {"leaf0", "spine0"}
    assert all(at_ns >= order["base_ns"] for at_ns in ends.values())
    late = [text for text in run["warnings"] if "event 0 was ordered for" in text]
    assert bool(late) == any(at_ns > order["base_ns"] for at_ns in ends.values())
    assert "At its ends" in (out / "report.html").read_text()
    (row,) = run["link_events"]
    assert (row["link"], row["happened"], row["rate_bps"]) == ("leaf0-spine0.0", "rate", 200e9)


@pytest.mark.parametrize(
    ("event", "told"),
    [
        ("links: x-*, change: down, at_ns: 0", "links: is x-*, which no link matches"),
        ("links: '*', change: down", "at_ns: is missing; give one of at_ns, at_node"),
        ("links: '*', change: up, at_ns: 0, at_node: {rank: 0, node: 1}", "at_ns and at_node are"),
        ("links: '*', change: flap, at_ns: 0", "down_ns: is missing, and the change is a flap"),
        ("links: '*', change: rate, at_ns: 0", "rate_gbps: is missing, and the change is a rate"),
        ("links: '*', change: down, at_ns: 0, repeat: 2", "repeat: is given, and the change is"),
        ("links: '*', change: flap, at_ns: 0, down_ns: 9, interval_ns: 9", "interval_ns: is 9"),
    ],
)
def test_an_event_that_says_too_little_or_too_much_is_refused(event: str, told: str) -> None:
    with pytest.raises(InputError) as caught:
        load_lab("loopback-clos", [f"events=[{{{event}}}]"])
    assert "events.0." in str(caught.value)
    assert told in str(caught.value)


@pytest.mark.parametrize(
    ("moment", "told"),
    [
        ("at_node: {rank: 80, node: 1}", "events.0.at_node.rank: is 80"),
        ("at_node: {rank: 0, node: 987654321}", "events.0.at_node.node: is 987654321"),
        ("at_node: {rank: 0, node: 1, iteration: 4}", "events.0.at_node.iteration: is 4"),
        ("at_collective: {kind: all_reduce, index: 2}", "at_collective.index: is 2, and 2"),
    ],
)
def test_a_moment_that_the_job_does_not_have_is_refused(moment: str, told: str) -> None:
    with pytest.raises(InputError) as caught:
        built(f"{{links: '*', change: down, {moment}}}")
    assert told in str(caught.value)

"""Paths of flows: what the engine counted per link, taken apart, and conserved."""

import json
from collections import Counter
from pathlib import Path

import polars as pl
import pytest

import dataplane
from emulator.job import JobRequest, build_job
from emulator.predict import predict
from metrics.analysis.flow_paths import FLOW_LINK_SCHEMA, flow_paths
from metrics.records import RunRecords, write_records
from metrics.report.charts.paths import path_picture
from tests.dataplane.engine_jobs import ring, star_config, virtual


def recorded(directory: Path, lab: str, profile: str, *overrides: str) -> RunRecords:
    """Predict a job and write its records."""
    job = build_job(JobRequest(lab=lab, profile=profile, overrides=overrides))
    return write_records(
        directory,
        run=job.run_info,
        programs=job.programs,
        instances=job.compiled.instances,
        config=job.config,
        engine=predict(job),
    )


def flow_links(*rows: tuple[str, str, int], flow: tuple[int, int, int] = (0, 1, 9)) -> pl.DataFrame:
    """One flow's links: sending end, receiving end, packets of 100 bytes."""
    return pl.DataFrame(
        [(*flow, f"{a}-{b}", 0, a, b, n, 100 * n, 50 * n) for a, b, n in rows],
        schema=FLOW_LINK_SCHEMA,
        orient="row",
    )


def test_a_flow_on_one_way_is_one_path() -> None:
    """Whatever the order of its links."""
    links = flow_links(("leaf0:1", "spine0:0", 7), ("spine0:1", "nic1", 7), ("nic0", "leaf0:0", 7))
    (row,) = flow_paths(links).to_dicts()
    assert row["nodes"] == ["nic0", "leaf0", "spine0", "nic1"]
    assert (row["tx_packets"], row["tx_bytes"], row["share_ratio"]) == (7, 700, 1.0)
    assert row["links"] == ["nic0-leaf0:0", "leaf0:1-spine0:0", "spine0:1-nic1"]
    assert row["arrives"]


def test_a_spread_flow_is_taken_apart_and_lost_packets_end_where_they_were_lost() -> None:
    """5 of 8 packets over spine1, 3 over spine0, one of which is dropped there."""
    links = flow_links(
        ("nic0", "leaf0:0", 8),
        ("leaf0:1", "spine0:0", 3),
        ("leaf0:2", "spine1:0", 5),
        ("spine0:1", "leaf1:1", 2),
        ("spine1:1", "leaf1:2", 5),
        ("leaf1:0", "nic1", 7),
    )
    paths = flow_paths(links)
    assert paths["tx_packets"].to_list() == [5, 2, 1]
    assert paths["nodes"].list.last().to_list() == ["nic1", "nic1", "spine0"]
    assert paths["arrives"].to_list() == [True, True, False]
    assert paths["tx_bytes"].sum() == 800


def test_what_flows_send_adds_up_to_what_links_carry(tmp_path: Path) -> None:
    """On every direction the flows and the pauses together are the link's packets and bytes."""
    records = recorded(
        tmp_path, "loopback-clos", "moe-training", "switches.path_selection.mode=packet",
        "transport.loss_recovery=selective_repeat",
    )  # fmt: skip
    keys, sums = ["link", "direction"], ["tx_packets", "tx_bytes", "data_bytes"]
    links, flows = (
        table.cast({"link": pl.String}).group_by(keys).agg(pl.col(sums).sum()).sort(keys)
        for table in (records.links, records.flow_links)
    )
    assert links.equals(flows)
    assert links["tx_bytes"].sum() > 0


def test_a_flow_takes_one_path_under_flow_hashing_and_several_when_sprayed(tmp_path: Path) -> None:
    """Flows between leaves; data flows all arrive, and no packet of a NIC is missing."""
    taken = {}
    for mode in ("flow", "packet"):
        records = recorded(
            tmp_path / mode, "loopback-clos", "permutation", f"switches.path_selection.mode={mode}"
        )
        paths = records.paths.filter(pl.col("is_data") & (pl.col("nodes").list.len() > 3))
        taken[mode] = Counter(paths.select("source_rank", "source_port").rows())
        assert paths["arrives"].all()
        at_nics = records.flow_links.filter(~pl.col("source").cast(pl.String).str.contains(":"))
        assert records.paths["tx_packets"].sum() == at_nics["tx_packets"].sum()
    assert taken["flow"].keys() == taken["packet"].keys()
    assert set(taken["flow"].values()) == {1}
    assert min(taken["packet"].values()) > 1


def test_the_picture_loses_nothing_on_the_way(tmp_path: Path) -> None:
    """What comes into a node that is no host leaves it; hosts send what hosts receive."""
    records = recorded(tmp_path, "loopback-clos", "all-to-all,repeats=1")
    chart = path_picture(records.flow_links)
    assert chart is not None
    nodes, bands = chart.data[0]["node"]["label"], chart.data[0]["link"]
    balance: Counter[int] = Counter()
    for source, target, size in zip(bands["source"], bands["target"], bands["value"], strict=True):
        balance[source] -= size
        balance[target] += size
    assert all(balance[n] == 0 for n, name in enumerate(nodes) if not name.startswith("host"))
    sent = -sum(size for size in balance.values() if size < 0)
    data = records.paths.filter("is_data")
    assert sent == data["tx_bytes"].sum() == sum(size for size in balance.values() if size > 0)
    assert sorted(nodes).count("leaf0") == 2
    assert sorted(nodes).count("spine0") == 1


@pytest.mark.parametrize("flow_paths", [True, False])
def test_flows_are_counted_only_if_asked_for(flow_paths: bool) -> None:
    """The lab's `telemetry.flow_paths` is the engine's; results are the same."""
    config = star_config(3, f"telemetry.flow_paths={json.dumps(flow_paths)}")
    engine: dataplane.Emulation = virtual(config, ring(3, 2, 10_000))
    engine.advance()
    assert engine.is_done
    assert (len(engine.records()["flow_links"]["link"]) > 0) == flow_paths


def test_of_too_many_branching_flows_the_largest_are_taken_apart(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """With room for five links: the flow of 5 packets is, the one of 4 is not."""
    ways = [
        [("nic0", "leaf0:0", n), ("leaf0:1", "spine0:0", 1), ("leaf0:2", "spine1:0", n - 1)]
        for n in (4, 5)
    ]
    flows = pl.concat([flow_links(*way, flow=(0, way[0][2], 9)) for way in ways])
    monkeypatch.setattr("metrics.analysis.flow_paths.LINK_LIMIT", 5)
    assert flow_paths(flows)["destination_rank"].to_list() == [5, 5]


def test_a_whole_table_yields_what_its_flows_yield_one_by_one() -> None:
    """Single paths, a branching one and one that loses packets, side by side."""
    single = [("nic0", "leaf0:0", 7), ("leaf0:1", "spine0:0", 7), ("spine0:1", "nic1", 7)]
    branching = [("nic0", "leaf0:0", 5), ("leaf0:1", "spine0:0", 2), ("leaf0:2", "spine1:0", 3)]
    losing = [("nic0", "leaf0:0", 5), ("leaf0:1", "nic1", 4)]
    circling = [("nic0", "leaf0:0", 5), ("leaf0:1", "spine0:0", 5), ("spine0:1", "leaf0:2", 5)]
    astray = [("nic0", "leaf0:0", 5), ("spine7:1", "spine8:2", 5)]
    flows = [
        flow_links(*rows, flow=(0, number, 9))
        for number, rows in enumerate((single, branching, losing, circling, astray, single[:1]))
    ]
    assert flow_paths(pl.concat(flows)).equals(pl.concat([flow_paths(flow) for flow in flows]))
    found = flow_paths(pl.concat(flows)).select("destination_rank", "tx_packets", "arrives")
    assert found.rows() == [
        (0, 7, True), (1, 3, False), (1, 2, False), (2, 4, True), (2, 1, False), (3, 5, False),
        (4, 5, False), (5, 7, False),
    ]  # fmt: skip

"""Expected against actual load of equal-cost ports: the hash computed twice, apart."""

from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import pytest

from emulator.sweep.figures import figures_of
from metrics.analysis.ecmp import ecmp_shares, hash_choices
from metrics.analysis.flow_paths import FLOW_LINK_SCHEMA
from metrics.compare import compare
from metrics.records import RunRecords
from tests.metrics.test_flow_paths import recorded


@pytest.fixture(scope="module")
def hashed(tmp_path_factory: pytest.TempPathFactory) -> RunRecords:
    """A permutation on four leaves and four spines, by flow hash."""
    return recorded(
        tmp_path_factory.mktemp("hashed"), "loopback-clos", "all-to-all",
        "topology.leaves=4", "topology.spines=4", "topology.fabric_link.parallel=1",
    )  # fmt: skip


def test_by_hash_every_port_carries_what_the_hash_says(hashed: RunRecords) -> None:
    """Python's walk over the routes and the engine's switches agree on every byte."""
    shares = hashed.ecmp
    assert set(shares["switch"]) == {"leaf0", "leaf1", "leaf2", "leaf3"}
    assert shares["decided_by"].unique().to_list() == ["hash"]
    assert shares["expected_bytes"].to_list() == shares["tx_bytes"].to_list()
    assert shares["expected_flows"].to_list() == shares["flows"].to_list()
    assert shares["max_over_mean"].min() > 1.0  # type: ignore[operator]


def test_what_a_group_carries_is_what_its_links_carry(hashed: RunRecords) -> None:
    """Going up there is no other traffic: the bytes are those of the links, pauses apart."""
    links = hashed.links.cast({"link": pl.String, "source": pl.String})
    sums = links.group_by("link", "source").agg(pl.col("tx_bytes").sum()).rows_by_key("source")
    pauses = hashed.flow_links.filter(pl.col("source_rank").is_null()).cast({"source": pl.String})
    paused = dict(pauses.select("source", "tx_bytes").iter_rows())
    for row in hashed.ecmp.iter_rows(named=True):
        end = f"{row['switch']}:{row['port']}"
        assert row["tx_bytes"] + paused.get(end, 0) == sums[end][0][1]


def test_with_another_seed_the_hash_expects_something_else(hashed: RunRecords) -> None:
    """The agreement is no accident."""
    config = {**hashed.run["job"]}
    config["switches"] = [
        {**switch, "ecmp_seed": switch["ecmp_seed"] ^ 1} for switch in config["switches"]
    ]
    other = ecmp_shares(config, hashed.flow_links)
    assert other["expected_bytes"].to_list() != hashed.ecmp["expected_bytes"].to_list()
    assert other["tx_bytes"].to_list() == hashed.ecmp["tx_bytes"].to_list()


def test_sprayed_packets_are_expected_in_even_parts(tmp_path: Path) -> None:
    """Packets by chance: half of the bytes on each of two spines, and nearly so in fact."""
    shares = recorded(
        tmp_path, "loopback-clos", "permutation", "switches.path_selection.mode=packet"
    ).ecmp
    assert shares["decided_by"].unique().to_list() == ["chance"]
    assert shares["expected_share_ratio"].to_numpy() == pytest.approx(
        shares["even_share_ratio"].to_numpy()
    )
    assert shares["share_ratio"].to_numpy() == pytest.approx(
        shares["even_share_ratio"].to_numpy(), abs=0.05
    )


def test_a_comparison_shows_both_balances_and_says_when_they_differ(
    tmp_path: Path, hashed: RunRecords
) -> None:
    """By hash against sprayed: the table has both, the explanation names the totals."""
    sprayed = recorded(
        tmp_path, "loopback-clos", "all-to-all", "topology.leaves=4", "topology.spines=4",
        "topology.fabric_link.parallel=1", "switches.path_selection.mode=packet",
    )  # fmt: skip
    result = compare(hashed, sprayed)
    assert len(result.ecmp) == 4
    for row in result.ecmp:
        assert row["first_max_over_mean"] == pytest.approx(row["first_expected_max_over_mean"])
        assert row["second_expected_max_over_mean"] == pytest.approx(1.0)
        assert row["second_max_over_mean"] < row["first_max_over_mean"]
    assert any(text.startswith("equal-cost ports: largest/mean") for text in result.explanations)
    differing, compared = result.paths
    assert 0 < differing < compared == 16 * 15
    assert f"{differing} of {compared} data flows took another path." in result.explanations


def test_the_paths_of_a_job_repeated_are_the_same(hashed: RunRecords) -> None:
    """Nothing is said about paths then."""
    result = compare(hashed, hashed)
    assert result.paths == (0, 16 * 15)
    assert not [text for text in result.explanations if "path" in text]


def test_a_sweep_may_rank_by_the_balance(hashed: RunRecords) -> None:
    """The figure is the mean over the groups by their bytes, between the least and the largest."""
    balance = figures_of(hashed)["ecmp_max_over_mean"]
    ratios = hashed.ecmp["max_over_mean"].to_numpy()
    assert ratios.min() < balance < ratios.max()


def two_ways(*ports: int) -> dict[str, Any]:
    """A host at either of two switches with links between their ports 1 and 2."""
    ends: list[tuple[dict[str, int], int, dict[str, int], int]] = [
        ({"nic": 0}, 0, {"switch": 0}, 0),
        ({"nic": 1}, 0, {"switch": 1}, 0),
        ({"switch": 0}, 1, {"switch": 1}, 1),
        ({"switch": 0}, 2, {"switch": 1}, 2),
    ]
    return {
        "nics": [
            {"name": f"nic{n}", "rank": n, "address": f"10.0.0.{n + 1}"} for n in range(2)
        ],
        "switches": [
            {"name": "left", "ecmp_seed": 1, "routes": [[0], list(ports)]},
            {"name": "right", "ecmp_seed": 2, "routes": [[1], [0]]},
        ],
        "links": [
            {"name": f"link{n}", "a": {"node": a, "port": p}, "b": {"node": b, "port": q}}
            for n, (a, p, b, q) in enumerate(ends)
        ],
    }  # fmt: skip


def test_a_load_is_compared_with_the_weight_of_its_port() -> None:
    """Two thirds on a port of weight two are even; half is 3/2 of the mean on the other one."""
    rows = [(0, 1, 9, "link0", 0, "nic0", "left:0", 6, 600, 500)]
    for port, packets in ((1, 3), (2, 3)):
        rows.append((0, 1, 9, f"link{port + 1}", 0, f"left:{port}", f"right:{port}",
                     packets, 100 * packets, 0))  # fmt: skip
    flows = pl.DataFrame(rows, schema=dict(FLOW_LINK_SCHEMA), orient="row")
    config = two_ways(1, 1, 2)
    config["switches"][0]["path_selection"] = {"mode": "packet"}
    shares = ecmp_shares(config, flows)
    assert shares["weight"].to_list() == [2, 1]
    assert shares["expected_bytes"].to_list() == pytest.approx([400.0, 200.0])
    assert shares["expected_max_over_mean"].to_list() == pytest.approx([1.0, 1.0])
    assert shares["max_over_mean"].to_list() == pytest.approx([1.5, 1.5])


def test_the_choices_of_the_hash_are_even() -> None:
    """2^16 flows over three ports, each within 2 % of a third."""
    flows = np.arange(1 << 16, dtype=np.uint64)
    chosen = hash_choices(7, flows, flows + np.uint64(9), flows, 3)
    counts = np.bincount(chosen, minlength=3)
    assert counts.sum() == 1 << 16
    assert counts == pytest.approx([65536 / 3] * 3, rel=0.02)

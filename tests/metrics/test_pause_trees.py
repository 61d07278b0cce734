"""PFC as trees: who paused whom, from which congestion, recursively to the hosts."""

from typing import Any

import polars as pl
import pytest

from metrics.analysis.pause_trees import PauseNode, parents, pause_trees
from metrics.records import RunRecords
from metrics.records.pauses import PAUSE_SCHEMA
from tests.metrics.test_flow_paths import recorded

RATE_BPS = 8e9
"""1000 ps a byte."""
LINKS = {(0, 1): ((1, 5), 100, RATE_BPS), (1, 0): (None, 100, RATE_BPS)}
"""Port 1 of switch 0 leads to port 5 of switch 1, whose port 0 leads to a NIC."""


def pause(
    switch: int, port: int, times: tuple[int, int], cause: int, **more: int
) -> dict[str, Any]:
    """A pause whose cause is full since time 0 with 1000 bytes."""
    return {
        "switch": switch, "port": port, "priority": 3, "begin_ps": times[0], "end_ps": times[1],
        "cause_port": cause, "oldest_ps": 0, "depth_bytes": 1000, **more,
    }  # fmt: skip


def test_a_queue_that_was_paused_while_it_filled_passes_the_congestion_on() -> None:
    """Switch 1 paused port 1 of switch 0 for most of the time that its queue had waited."""
    first = pause(1, 5, (100_000, 1_000_000), cause=0)
    second = pause(0, 7, (900_000, 1_000_000), cause=1)
    assert parents([first, second], LINKS) == [None, 0]


def test_a_queue_that_fills_faster_than_its_line_is_congested_of_itself() -> None:
    """It took in 1000 B, 1 us of its line, in 0.9 us, and was paused for a third of that."""
    first = pause(1, 5, (100_000, 400_000), cause=0)
    second = pause(0, 7, (900_000, 1_000_000), cause=1)
    assert parents([first, second], LINKS) == [None, None]


def test_a_queue_that_its_line_could_have_carried_is_there_for_the_pause() -> None:
    """500 B in 0.9 us is no congestion; that it was paused for a third of the time is."""
    first = pause(1, 5, (100_000, 400_000), cause=0)
    second = pause(0, 7, (900_000, 1_000_000), cause=1, depth_bytes=500)
    assert parents([first, second], LINKS) == [None, 0]


def test_a_pause_of_another_priority_or_before_the_queue_explains_nothing() -> None:
    second = pause(0, 7, (900_000, 1_000_000), cause=1, oldest_ps=500_000)
    before = pause(1, 5, (100_000, 300_000), cause=0)
    other = pause(1, 5, (100_000, 2_000_000), cause=0, priority=4)
    assert parents([before, other, second], LINKS)[2] is None


def rows(*pauses: tuple[Any, ...]) -> pl.DataFrame:
    """A table of (begin, end, switch, port, paused, parent); the cause is port 9 to `sink`."""
    return pl.DataFrame(
        [
            (number, begin, end, switch, port, 3, "link", paused, 10, 20 + number, 9, "sink", 10,
             100 + number, 5, parent)
            for number, (begin, end, switch, port, paused, parent) in enumerate(pauses)
        ],
        schema=dict(PAUSE_SCHEMA),
        orient="row",
    )  # fmt: skip


def test_pauses_at_one_place_are_one_node_under_what_they_follow_from() -> None:
    """Counted, timed from the first beginning to the last end, with the most that was held."""
    (tree,) = pause_trees(
        rows(
            (0, 10, "leaf", 1, "spine:2", None),
            (5, 9, "spine", 3, "host", 0),
            (20, 25, "leaf", 1, "spine:2", None),
            (22, None, "spine", 3, "host", 2),
        ),
        end_ns=30,
    )
    assert (tree.switch, tree.port, tree.towards, tree.max_depth_bytes) == ("leaf", 9, "sink", 102)
    child = PauseNode("spine", 3, "host", [(5, 9), (22, 30)], 23)
    assert tree.children == [PauseNode("leaf", 1, "spine:2", [(0, 10), (20, 25)], 22, [child])]
    assert tree.paused_ns == 27


def test_a_circle_of_pauses_comes_back_to_its_node() -> None:
    """A deadlock has no end; its tree has one."""
    (tree,) = pause_trees(
        rows(
            (0, None, "a", 1, "b:1", None),
            (1, None, "b", 2, "c:1", 0),
            (2, None, "a", 1, "b:1", 1),
        ),
        end_ns=9,
    )
    assert [(depth, node.switch) for depth, node in tree.walk()] == [(1, "a"), (2, "b")]
    assert len(tree.children[0].spans) == 2


@pytest.fixture(scope="module")
def spread(tmp_path_factory: pytest.TempPathFactory) -> RunRecords:
    """Two hosts behind each of two leaves, two spines: one host receives from all at line rate.

    Neither the leaf of the distant senders nor a spine is oversubscribed, packets take the shorter
    queue, and nobody slows down: the receiver's port alone is congested.
    """
    return recorded(
        tmp_path_factory.mktemp("incast"), "loopback-clos", "incast,size_bytes=8388608,repeats=1",
        "topology.hosts_per_leaf=2", "topology.fabric_link.parallel=1",
        "switches.buffer_bytes=4194304", "switches.pfc.headroom_allowance_bytes=0",
        "switches.ecn.enabled=false", "switches.path_selection.mode=shortest_queue",
        "congestion_control={algorithm: fixed_rate}", "transport.loss_recovery=selective_repeat",
    )  # fmt: skip


def test_an_incast_pauses_two_tiers_upstream_and_the_hosts(spread: RunRecords) -> None:
    """The receiver's leaf pauses a host and both spines, these the other leaf, it its hosts."""
    (tree,) = pause_trees(spread.pauses, spread.run["emulated_ns"])
    assert (tree.switch, tree.port, tree.towards) == ("leaf0", 0, "host0")
    found = {(depth, node.switch, node.paused.partition(":")[0]) for depth, node in tree.walk()}
    assert found == {
        (1, "leaf0", "host1"),
        (1, "leaf0", "spine0"),
        (1, "leaf0", "spine1"),
        (2, "spine0", "leaf1"),
        (2, "spine1", "leaf1"),
        (3, "leaf1", "host2"),
        (3, "leaf1", "host3"),
    }


def test_what_follows_begins_later_and_time_is_that_of_the_ports(spread: RunRecords) -> None:
    """A child begins after its parent; a host is paused as long as it is asked."""
    pauses = spread.pauses
    begins = dict(pauses.select("pause", "begin_ns").iter_rows())
    followers = pauses.filter(pl.col("parent").is_not_null())
    assert all(begins[parent] < begin for parent, begin in followers["parent", "begin_ns"].rows())
    of_host = pauses.filter(pl.col("paused") == "host1")
    asked_ns = (of_host["end_ns"] - of_host["begin_ns"]).sum()
    paused_ns = spread.queues.filter(pl.col("node") == "host1", priority=3)["paused_ns"].sum()
    assert asked_ns == pytest.approx(paused_ns, rel=0.05)


def test_the_trees_stand_in_the_run_record(spread: RunRecords) -> None:
    """With counts and times, nested."""
    said = spread.run["pause_trees"]
    assert (said["count"], said["pauses_left_out"]) == (1, 0)
    children = said["trees"][0]["children"]
    assert sum(child["pauses"] for child in children) == len(
        spread.pauses.filter(pl.col("parent").is_null())
    )
    assert {child["paused"] for child in children} == {"host1", "spine0:0", "spine1:0"}

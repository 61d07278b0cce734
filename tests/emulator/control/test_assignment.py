"""Nodes are spread over agents so that neighbours stay together."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dataplane.errors import InputError
from emulator.control.assignment import Topology, assign, wire_ends
from emulator.control.run_plan import RunPlan, spread
from tests.emulator.control.fabrics import config, config_json, joins


@given(
    st.integers(min_value=1, max_value=20),
    st.integers(min_value=1, max_value=5),
    st.integers(min_value=1, max_value=9),
)
def test_every_node_is_carried_exactly_once(hosts: int, leaves: int, agents: int) -> None:
    """No wire end is left alone and none is opened twice."""
    topology = Topology(config(hosts, leaves))
    assigned = assign(topology, [f"a{index}" for index in range(agents)])
    carried = [node for nodes in assigned.values() for node in nodes]
    assert sorted(carried) == sorted(topology.nodes)


def test_a_leaf_stays_with_its_hosts() -> None:
    """Most frames then stay within one process's cache."""
    assigned = assign(Topology(config(hosts=4, leaves=2)), ["a", "b"])
    assert assigned["a"][:3] == ["h0", "h1", "l0"]
    assert {"h2", "h3", "l1"} <= set(assigned["b"])


def test_every_wire_has_two_ends() -> None:
    """The ends of all nodes are both ends of all links."""
    topology = Topology(config())
    names = {name for name, *_ in topology.links}
    ends = wire_ends(topology, set(topology.nodes))
    assert set(ends) == {f"{name}/{side}" for name in names for side in (0, 1)}


def test_agents_without_nodes_are_left_out() -> None:
    """More agents than nodes are not an error."""
    assert all(spread(config_json(), 50).values())


@pytest.mark.parametrize(
    ("agents", "what"),
    [
        ({"a": ["h0", "h1", "h2", "h3", "l0", "l1"]}, "by no agent: s0"),
        ({"a": ["h0", "h1", "h2", "h3", "l0", "l1", "s0"], "b": ["h0"]}, "several agents: h0"),
        ({"a": ["h0", "h1", "h2", "h3", "l0", "l1", "s0", "x"]}, "not nodes of the lab: x"),
        ({"a/b": ["h0", "h1", "h2", "h3", "l0", "l1", "s0"]}, "'a/b'"),
    ],
)
def test_a_wrong_placement_is_an_input_error(agents: dict[str, list[str]], what: str) -> None:
    """With the nodes or names that are wrong."""
    with pytest.raises(InputError, match=what):
        RunPlan("r", config_json(), [joins(rank) for rank in range(4)], 1, agents)


def test_an_agent_gets_the_programs_of_its_ranks_only() -> None:
    """A job is as small as it can be."""
    programs = [joins(rank) for rank in range(4)]
    plan = RunPlan("r", config_json(), programs, 1, spread(config_json(), 2))
    assert [program.rank for program in plan.programs_of("agent-1")] == [2, 3]

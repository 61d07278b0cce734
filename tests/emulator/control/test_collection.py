"""What the controller takes of the parts that agents give."""

import json
from typing import Any

import pytest

from emulator.control import columns
from emulator.control.clock_watch import ClockWatch
from emulator.control.collection import Collection
from emulator.control.roster import Roster
from emulator.control.run_plan import RunPlan
from tests.emulator.control.fabrics import config_json, joins

AGENTS = {"agent-0": ["h0", "h1", "l0"], "agent-1": ["h2", "h3", "l1", "s0"]}
PORT = {"driver": "udp", "max_frame_bytes": 4214, "has_ecn": True, "timestamps": "kernel"}


def ports_after(told: Any) -> dict[str, dict[str, Any]]:
    """Return the ports in the report of a run, after the first agent has told of some."""
    plan = RunPlan("run-1", config_json(), [joins(rank) for rank in range(4)], 1000, AGENTS)
    collection = Collection(plan, Roster(plan.run_id, plan.agents))
    text = told if isinstance(told, str) else json.dumps(told)
    collection.take("agent-0", columns.encode({"records": {"events": 1}, "ports": text}))
    return collection.report("embedded", None, ClockWatch()).ports


def test_ports_of_an_agents_own_nics_are_taken() -> None:
    """Those of others' are none of its business."""
    assert ports_after({"h0": PORT, "h1": PORT}) == {"h0": PORT, "h1": PORT}
    assert ports_after({"h0": PORT, "h2": PORT, "nobody": PORT}) == {"h0": PORT}


@pytest.mark.parametrize(
    "told",
    [
        "no json",
        "[" * 100_000,
        7,
        {"h0": 7},
        {"h0": {"driver": {"nested": 1}}},
        {"h0": {"driver": ["udp"]}},
        {"h0": {"driver": "u" * 10_000}},
        {"h0": {"k" * 10_000: 1}},
        {"h0": {"driver": "udp\x1b[2J"}},
        {"h0": {"line_rate_bps": 10**400}},
        {"h0": {"line_rate_bps": float("nan")}},
        {"h0": {"line_rate_bps": float("-inf")}},
        {"h0": {str(number): number for number in range(1000)}},
    ],
)
def test_what_is_no_table_of_plain_and_short_values_is_left_out(told: Any) -> None:
    assert ports_after(told) == {}

"""What an agent refuses, whatever the controller says."""

import pytest

from emulator.control import safety
from emulator.control.agent_config import AgentConfig
from emulator.control.assignment import Topology
from emulator.control.messages import WireAddress
from tests.emulator.control.fabrics import config

BROKER = "mqtt://127.0.0.1"
ENDS = {"h0-l0/0"}


@pytest.mark.parametrize(
    "address", ["198.18.0.1", "8.8.8.8", "255.255.255.255", "::1", "localhost", ""]
)
def test_an_address_outside_of_the_prefixes_is_refused(address: str) -> None:
    """The agent's file alone says where traffic may go."""
    peers = {"h0-l0/0": WireAddress(address=address, port=1)}
    with pytest.raises(safety.SafetyError, match="allowed_prefixes"):
        safety.check_peers(AgentConfig(name="a", broker=BROKER), peers, ENDS)


def test_an_address_of_a_wire_that_is_not_the_agents_is_refused_too() -> None:
    """A forbidden address anywhere in the message is a reason to refuse it."""
    peers = {
        "h0-l0/0": WireAddress(address="127.0.0.1", port=1),
        "other/0": WireAddress(address="8.8.8.8", port=1),
    }
    with pytest.raises(safety.SafetyError):
        safety.check_peers(AgentConfig(name="a", broker=BROKER), peers, ENDS)


def test_a_missing_peer_is_refused() -> None:
    """A wire that leads nowhere would stall the run."""
    with pytest.raises(safety.SafetyError, match="h0-l0/0"):
        safety.check_peers(AgentConfig(name="a", broker=BROKER), {}, ENDS)


def test_the_rate_cap_bounds_the_sum_of_the_agents_wires() -> None:
    """Three wire ends of 1 Gb/s, dilated ten times, need 300 Mb/s."""
    topology = Topology(config())
    nodes = {"h0", "s0"}
    allowed = AgentConfig(name="a", broker=BROKER, rate_cap_bps=300_000_000)
    safety.check_rates(allowed, topology, nodes, time_dilation=10)
    capped = AgentConfig(name="a", broker=BROKER, rate_cap_bps=299_999_999)
    with pytest.raises(safety.SafetyError, match="rate_cap_bps"):
        safety.check_rates(capped, topology, nodes, time_dilation=10)


def test_unknown_nodes_are_refused() -> None:
    """A node that is not in the fabric cannot be carried."""
    with pytest.raises(safety.SafetyError, match="h9"):
        safety.check_nodes(Topology(config()), {"h0", "h9"})

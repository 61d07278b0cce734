"""The checks between a remote wish and traffic: pure functions of the local file and the wish."""

from collections.abc import Mapping

from dataplane.errors import RunError
from emulator.control.agent_config import AgentConfig
from emulator.control.assignment import Topology, wire_ends
from emulator.control.messages import WireAddress

__all__ = ["SafetyError", "check_nodes", "check_peers", "check_rates"]


class SafetyError(RunError):
    """The agent's own file forbids what the controller asks for."""


def check_nodes(topology: Topology, nodes: set[str]) -> None:
    """Raise `SafetyError` if a node is not part of the fabric."""
    if unknown := nodes.difference(topology.nodes):
        raise SafetyError(f"the job gives the agent unknown nodes: {', '.join(sorted(unknown))}")


def check_rates(
    config: AgentConfig, topology: Topology, nodes: set[str], time_dilation: int
) -> None:
    """Raise `SafetyError` if the agent's wires could together exceed its rate cap.

    The engine paces every wire at its link's rate, so the sum of the rates bounds the traffic.
    """
    total_bps = sum(wire_ends(topology, nodes).values()) // time_dilation
    if config.rate_cap_bps is not None and total_bps > config.rate_cap_bps:
        raise SafetyError(
            f"the wires of the agent carry up to {total_bps} bit/s, its rate_cap_bps is "
            f"{config.rate_cap_bps}; raise time_dilation or the cap"
        )


def check_peers(config: AgentConfig, peers: Mapping[str, WireAddress], ends: set[str]) -> None:
    """Raise `SafetyError` unless every own wire end has a peer inside the allowed prefixes."""
    if missing := ends.difference(peers):
        raise SafetyError(f"no peer for the wire ends {', '.join(sorted(missing)[:8])}")
    for end, peer in peers.items():
        if not config.allows(peer.address):
            prefixes = ", ".join(str(prefix) for prefix in config.allowed_prefixes)
            raise SafetyError(
                f"wire end {end} would send to {peer.address}, outside of the agent's "
                f"allowed_prefixes {prefixes}"
            )

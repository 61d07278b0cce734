"""The checks between a remote wish and traffic: pure functions of the local file and the wish."""

import ipaddress
from collections.abc import Mapping
from typing import Any, Final

from dataplane.errors import RunError
from emulator.control.agent_config import AgentConfig
from emulator.control.assignment import Topology, wire_ends
from emulator.control.messages import WireAddress
from emulator.control.reach import through_default_route

__all__ = [
    "SafetyError",
    "check_nodes",
    "check_peers",
    "check_ports",
    "check_rates",
    "check_routes",
]


_ADAPTER: Final = "verbs"


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

    The engine paces every wire at its link's rate, so the sum of the rates bounds the traffic; a
    link whose rate events change counts with the highest.
    """
    total_bps = sum(wire_ends(topology, nodes).values()) // time_dilation
    if config.rate_cap_bps is not None and total_bps > config.rate_cap_bps:
        raise SafetyError(
            f"the wires of the agent carry up to {total_bps} bit/s, its rate_cap_bps is "
            f"{config.rate_cap_bps}; raise time_dilation or the cap"
        )


def check_ports(
    config: AgentConfig,
    ports: Mapping[str, Mapping[str, Any]],
    nodes: set[str],
    addresses: Mapping[str, str],
) -> None:
    """Raise `SafetyError` unless the ports of all own NICs are on allowed interfaces.

    Every NIC of the job is a possible destination, so all their `addresses` have to be allowed.
    """
    if missing := nodes.difference(ports):
        raise SafetyError(f"no port for {', '.join(sorted(missing)[:8])}")
    for name, address in addresses.items():
        if not config.allows(address):
            raise SafetyError(
                f"{name} has the address {address}, outside of the agent's allowed_prefixes "
                f"{', '.join(map(str, config.allowed_prefixes))}"
            )
    for name in sorted(nodes):
        port = ports[name]
        namespace, interface = port.get("namespace"), port.get("interface")
        if addresses[name] != port.get("address"):
            raise SafetyError(f"the port of {name} has another address than its NIC")
        is_adapter = port.get("driver") == _ADAPTER
        on_loopback = interface is None and namespace is None and _is_loopback(addresses[name])
        if on_loopback and not is_adapter:
            continue
        if is_adapter and not config.allow_device_rate:
            raise SafetyError(
                f"{name} is an RDMA device, which sends at the rate of its port whatever "
                "rate_cap_bps is; set allow_device_rate in the agent's file if it may"
            )
        if is_adapter and namespace is not None:
            raise SafetyError(f"{name} is an RDMA device, and those are opened in no namespace")
        if not config.allows_interface(namespace, interface):
            place = f"{namespace}/{interface}" if namespace is not None else f"{interface}"
            raise SafetyError(
                f"{name} is on the interface {place}, which the agent's interfaces do not name"
            )


def _is_loopback(address: str) -> bool:
    return ipaddress.ip_address(address).is_loopback


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


def check_routes(config: AgentConfig, peers: Mapping[str, WireAddress], routes: str) -> None:
    """Raise `SafetyError` if only the default route leads to a peer; `routes` is /proc/net/route.

    Wires are sockets without an interface: where they lead to is up to the routes.
    """
    addresses = sorted({peer.address for peer in peers.values()})
    lost = through_default_route(addresses, routes)
    if lost and not config.allow_default_route:
        raise SafetyError(
            f"only the default route leads to {', '.join(lost[:8])}; add a route to it, or set "
            "allow_default_route in the agent's file"
        )

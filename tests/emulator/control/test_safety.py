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


def test_the_rate_cap_bounds_what_events_make_of_a_link() -> None:
    """An event that raises a link's rate would otherwise raise the cap."""
    job = config()
    change = {"after_ps": 0, "change": {"kind": "rate", "rate_bps": 10**10}}
    job["events"] = [
        {"links": [0], "trigger": {"kind": "time", "at_ps": 5}, "changes": [change]},
        {"links": [1], "trigger": {"kind": "time", "at_ps": 5}, "changes": [change]},
    ]
    capped = AgentConfig(name="a", broker=BROKER, rate_cap_bps=10**10 - 1)
    with pytest.raises(safety.SafetyError, match="up to 10000000000 bit/s"):
        safety.check_rates(capped, Topology(job), {"h0"}, time_dilation=1)
    safety.check_rates(capped, Topology(job), {"h2"}, time_dilation=1)


@pytest.mark.parametrize(
    "address",
    ["224.0.0.1", "255.255.255.255", "0.0.0.0", "198.18.0.1\n"],  # noqa: S104
)
def test_groups_and_everybody_are_refused_inside_of_any_prefix(address: str) -> None:
    """The widest file that there is does not name one of them as a host."""
    widest = AgentConfig(
        name="a",
        broker=BROKER,
        allowed_prefixes=("0.0.0.0/0",),  # type: ignore[arg-type]
        allow_public=True,
        rate_cap_bps=1,
    )
    with pytest.raises(safety.SafetyError, match="allowed_prefixes"):
        safety.check_peers(widest, {"h0-l0/0": WireAddress(address=address, port=1)}, ENDS)


ROUTES = "heads\neth0 00000000 0100000A 0003 0 0 0 00000000 0 0 0\n"
"""A host that has a default route and nothing else."""


def test_a_peer_behind_the_default_route_is_refused() -> None:
    """Unless the agent's file allows it; loopback needs no route."""
    peers = {"h0-l0/0": WireAddress(address="198.18.0.1", port=1)}
    with pytest.raises(safety.SafetyError, match=r"default route leads to 198\.18\.0\.1"):
        safety.check_routes(real(), peers, ROUTES)
    safety.check_routes(real(allow_default_route=True), peers, ROUTES)
    safety.check_routes(real(), {"x/0": WireAddress(address="127.0.0.1", port=1)}, ROUTES)


def test_unknown_nodes_are_refused() -> None:
    """A node that is not in the fabric cannot be carried."""
    with pytest.raises(safety.SafetyError, match="h9"):
        safety.check_nodes(Topology(config()), {"h0", "h9"})


PORTS = {
    f"h{n}": {
        "driver": "udp",
        "address": f"198.18.0.{n + 1}",
        "interface": "eth0",
        "namespace": "n",
    }
    for n in range(4)
}


def real(**keys: object) -> AgentConfig:
    """Return the file of an agent that may send to the lab's network."""
    mine: dict[str, object] = {
        "allowed_prefixes": ["127.0.0.0/8", "198.18.0.0/24"],
        "interfaces": ["n/eth*"],
        "rate_cap_bps": 10**9,
    }
    return AgentConfig(name="a", broker=BROKER, **(mine | keys))  # type: ignore[arg-type]


def check_ports(config_: AgentConfig, ports: dict[str, dict[str, str]], *nodes: str) -> None:
    safety.check_ports(config_, ports, set(nodes), Topology(config()).addresses)


def test_ports_on_the_interfaces_and_in_the_prefixes_of_the_file_are_allowed() -> None:
    """With a pattern for names, and the namespace before the slash."""
    check_ports(real(), PORTS, "h0", "h3")


@pytest.mark.parametrize("interfaces", [[], ["eth0"], ["m/eth0"], ["n/ens*"], ["*"], ["n*"]])
def test_an_interface_that_the_file_does_not_name_is_refused(interfaces: list[str]) -> None:
    """The default names none."""
    with pytest.raises(safety.SafetyError, match="interface n/eth0"):
        check_ports(real(interfaces=interfaces), PORTS, "h0")


def test_a_port_without_an_interface_is_for_loopback_alone() -> None:
    """Routes could lead it anywhere."""
    ports = PORTS | {"h0": {"driver": "udp", "address": "198.18.0.1"}}
    with pytest.raises(safety.SafetyError, match="interface None"):
        check_ports(real(interfaces=["*"]), ports, "h0")
    safety.check_ports(
        AgentConfig(name="a", broker=BROKER),
        {"h0": {"driver": "udp", "address": "127.0.0.9"}},
        {"h0"},
        {"h0": "127.0.0.9"},
    )


@pytest.mark.parametrize("namespace", ["n/../m", "..", "", "n/x"])
def test_a_namespace_that_is_a_path_is_refused(namespace: str) -> None:
    """A `*` in the file stands for a name."""
    port = PORTS["h0"] | {"namespace": namespace}
    with pytest.raises(safety.SafetyError, match="interfaces do not name"):
        check_ports(real(interfaces=["*/eth0", "n*/eth0"]), PORTS | {"h0": port}, "h0")


ADAPTER = {"driver": "verbs", "address": "198.18.0.1", "interface": "eth0"}


def test_an_rdma_device_needs_the_permission_of_the_file() -> None:
    """It paces itself, so that no cap holds."""
    ports = PORTS | {"h0": ADAPTER}
    with pytest.raises(safety.SafetyError, match="allow_device_rate"):
        check_ports(real(interfaces=["eth0"]), ports, "h0")
    check_ports(real(interfaces=["eth0"], allow_device_rate=True), ports, "h0")


@pytest.mark.parametrize(
    "port",
    [
        ADAPTER | {"namespace": "n"},
        ADAPTER | {"interface": "eth1"},
        {"driver": "verbs", "address": "198.18.0.1"},
    ],
)
def test_an_rdma_device_is_on_an_interface_of_the_file(port: dict[str, str]) -> None:
    """Not on one of the same name that the file allows in a namespace."""
    allowed = real(interfaces=["n/eth0", "n/eth1", "eth0"], allow_device_rate=True)
    with pytest.raises(safety.SafetyError):
        check_ports(allowed, PORTS | {"h0": port}, "h0")


def test_every_nic_of_the_job_has_to_be_inside_the_prefixes() -> None:
    """Each may be a destination, also those that other agents carry."""
    with pytest.raises(safety.SafetyError, match=r"h3 has the address 198\.18\.0\.4"):
        check_ports(real(allowed_prefixes=["127.0.0.0/8", "198.18.0.0/30"]), PORTS, "h0")


def test_a_port_has_the_address_of_its_nic() -> None:
    """Which is the one that was checked."""
    ports = PORTS | {"h0": PORTS["h0"] | {"address": "8.8.8.8"}}
    with pytest.raises(safety.SafetyError, match="another address"):
        check_ports(real(), ports, "h0")


def test_a_nic_without_a_port_is_refused() -> None:
    """Nothing is guessed."""
    with pytest.raises(safety.SafetyError, match="no port for h1"):
        check_ports(real(), {"h0": PORTS["h0"]}, "h0", "h1")


def test_the_rate_cap_bounds_the_nics_of_a_real_network() -> None:
    """Two NICs of 1 Gb/s, dilated ten times."""
    topology = Topology(config())
    safety.check_rates(real(rate_cap_bps=200_000_000), topology, {"h0", "h1"}, time_dilation=10)
    with pytest.raises(safety.SafetyError, match="rate_cap_bps"):
        safety.check_rates(real(rate_cap_bps=199_999_999), topology, {"h0", "h1"}, time_dilation=10)

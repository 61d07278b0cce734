"""What a lab becomes as namespaces: pure data, checked before anything is made."""

import ipaddress
from pathlib import Path

import pytest

from dataplane.errors import InputError
from emulator.lab import load
from emulator.namespaces.layout import NETWORK, Layout, lay_out


@pytest.fixture(scope="module")
def layout() -> Layout:
    return lay_out(load("netns-clos"))


def test_every_namespace_has_the_labs_name_in_its_own(layout: Layout) -> None:
    names = [node.namespace for node in layout.nodes]
    assert len(set(names)) == len(names) == 12
    assert all(name.startswith("rw-netns-clos-") for name in names)


def test_every_address_is_in_the_benchmarking_range_and_unique(layout: Layout) -> None:
    addresses = [ipaddress.IPv4Address(node.address) for node in layout.nodes]
    assert len(set(addresses)) == len(addresses)
    assert all(address in NETWORK for address in addresses)


def test_interfaces_are_unique_in_their_namespace_and_short_enough(layout: Layout) -> None:
    places = [(port.namespace, port.interface) for port in layout.ports]
    assert len(set(places)) == len(places)
    assert all(len(interface) <= 15 for _, interface in places)


def test_rates_are_divided_by_the_time_dilation(layout: Layout) -> None:
    assert {port.rate_bps for port in layout.ports} == {400_000_000_000 // 4000}


def test_a_leaf_reaches_other_leaves_over_every_uplink_and_its_own_hosts_directly(
    layout: Layout,
) -> None:
    routes = {route.destination: route for route in layout.routes["leaf0"]}
    assert len(routes) == 8
    own, other = layout.hosts["host0"].address, layout.hosts["host7"].address
    assert [hop.interface for hop in routes[f"{own}/32"].next_hops] == ["port0"]
    uplinks = [hop.interface for hop in routes[f"{other}/32"].next_hops]
    assert uplinks == ["port4", "port5", "port6", "port7"]


def test_only_ports_of_switches_mark_and_with_the_labs_profile(layout: Layout) -> None:
    for port in layout.ports:
        if port.node.startswith("host"):
            assert port.marking is None
        else:
            assert port.marking is not None
            assert port.marking.kmin_bytes == 800_000


def test_a_host_has_what_a_driver_needs_to_open_its_interface(layout: Layout) -> None:
    host = layout.hosts["host5"]
    assert (host.rank, host.interface, host.mtu_bytes) == (5, "eth0", 4200)
    leaf = next(node for node in layout.nodes if node.name == "leaf1")
    assert host.gateway_address == leaf.address
    assert host.gateway_mac == "02:00:00:01:00:01"


def test_a_lab_without_namespaces_is_told_how_to_get_them() -> None:
    with pytest.raises(InputError, match=r"loopback-clos.*add `namespaces: \{\}`"):
        lay_out(load("loopback-clos"))
    assert lay_out(load("loopback-clos", ["namespaces={}"])).options.mtu_bytes == 4200


@pytest.mark.parametrize(
    ("override", "told"),
    [
        ("namespaces.mtu_bytes=4100", "less than a full packet of 4156 bytes"),
        ("topology.host_link.rate_gbps=0.1", r"time_dilation: leaves host0-leaf0 25000 bit/s"),
    ],
)
def test_what_cannot_be_built_is_refused_with_the_reason(override: str, told: str) -> None:
    with pytest.raises(InputError, match=told):
        load("netns-clos", ["congestion_control={algorithm: fixed_rate}", override])


def test_a_loopback_address_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "lab.yaml"
    path.write_text(
        "name: two\nnamespaces: {}\ntopology:\n  kind: explicit\n  switches: []\n"
        "  nics: [{name: a, address: 127.0.0.2}, {name: b}]\n"
        "  links: [{ends: [a, b], rate_gbps: 1}]\n"
    )
    with pytest.raises(InputError, match=r"topology\.nics\.0\.address: is 127\.0\.0\.2"):
        load(path)

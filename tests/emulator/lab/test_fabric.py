"""A topology expands to the same names, addresses, links and equal-cost routes every time."""

import itertools
import time

import pytest

from emulator.lab.expansion import expand
from emulator.lab.fabric import Fabric
from emulator.lab.topology import Clos


def clos(leaves: int, spines: int, hosts: int, parallel: int = 1, **more: object) -> Fabric:
    tier = {"rate_gbps": 800, "parallel": parallel}
    topology = Clos.model_validate(
        {
            "kind": "clos",
            "leaves": leaves,
            "spines": spines,
            "hosts_per_leaf": hosts,
            "host_link": {"rate_gbps": 400},
            "fabric_link": tier,
            "core_link": tier,
            **more,
        }
    )

    def refuse(path: object, what: str, remedy: str) -> None:
        pytest.fail(f"{path}: {what}; {remedy}")

    return expand(topology, refuse)


def three_tiers() -> Fabric:
    return clos(leaves=3, spines=2, hosts=2, parallel=2, pods=3, cores_per_spine=2)


def walk(fabric: Fabric, source: int, target: int, choice: int) -> list[str]:
    """Follow the routes from NIC to NIC, always taking port number `choice` of the set."""
    attachment = fabric.attachment[source]
    assert attachment is not None
    switch, visited = attachment[0], []
    while True:
        visited.append(fabric.switches[switch].name)
        ports = fabric.routes(switch)[target]
        port = ports[choice % len(ports)]
        end = next(other for own, other, _ in fabric.neighbours[switch] if own == port)
        if not end.is_switch:
            assert end.index == target
            return visited
        switch = end.index


def test_every_route_leads_to_its_nic_in_one_or_three_switches() -> None:
    fabric = clos(leaves=3, spines=2, hosts=2, parallel=2)
    for source, target in itertools.permutations(range(6), 2):
        for choice in range(4):
            path = walk(fabric, source, target, choice)
            assert len(path) == (1 if source // 2 == target // 2 else 3)


def test_pods_are_five_switches_apart_and_leaves_of_a_pod_three() -> None:
    fabric = three_tiers()
    for source, target in itertools.permutations(range(0, 18, 2), 2):
        for choice in range(4):
            path = walk(fabric, source, target, choice)
            assert len(path) == (3 if source // 6 == target // 6 else 5)


def test_a_spine_reaches_other_pods_over_its_own_cores_only() -> None:
    fabric = three_tiers()
    spine = next(i for i, switch in enumerate(fabric.switches) if switch.name == "spine1")
    above = {
        fabric.switches[other.index].name
        for port, other, _ in fabric.neighbours[spine]
        if port in fabric.routes(spine)[17]
    }
    assert above == {"core2", "core3"}


def test_rails_put_equal_nics_of_different_hosts_one_switch_apart() -> None:
    fabric = clos(leaves=8, spines=2, hosts=4, nics_per_host=4, wiring="rails")
    assert fabric.nics[5].name == "host1-nic1"
    for source, target in itertools.permutations(range(16), 2):
        path = walk(fabric, source, target, 0)
        assert len(path) == (1 if source % 4 == target % 4 else 3)


def test_all_nics_of_a_host_are_on_one_leaf_otherwise() -> None:
    fabric = clos(leaves=2, spines=2, hosts=4, nics_per_host=4)
    assert len(walk(fabric, 0, 3, 0)) == 1
    assert len(walk(fabric, 0, 4, 0)) == 3


def test_a_leaf_spreads_over_every_uplink_and_a_spine_over_the_parallel_links() -> None:
    fabric = clos(leaves=2, spines=2, hosts=4, parallel=2)
    assert fabric.routes(0)[7] == [4, 5, 6, 7]
    assert fabric.routes(2)[7] == [2, 3]
    assert fabric.routes(1)[7] == [3]


def test_names_addresses_and_macs_are_unique() -> None:
    fabric = clos(leaves=4, spines=4, hosts=8)
    assert len({link.name for link in fabric.links}) == len(fabric.links)
    assert len(set(fabric.node_names)) == len(fabric.node_names)
    assert len({nic.address for nic in fabric.nics}) == len(fabric.nics)
    macs = {item.mac for item in (*fabric.nics, *fabric.switches)}
    assert len(macs) == len(fabric.node_names)


@pytest.mark.parametrize(
    "fabric",
    [
        clos(leaves=4, spines=3, hosts=5, parallel=2),
        three_tiers(),
        clos(leaves=4, spines=2, hosts=3, nics_per_host=2, wiring="rails"),
    ],
)
def test_every_port_is_used_once(fabric: Fabric) -> None:
    ends = [end for link in fabric.links for end in (link.a, link.b)]
    assert len(set(ends)) == len(ends)
    for switch, entries in zip(fabric.switches, fabric.neighbours, strict=True):
        assert [entry[0] for entry in entries] == list(range(switch.ports))


def test_a_thousand_hosts_expand_in_seconds() -> None:
    started = time.monotonic()
    fabric = clos(leaves=32, spines=32, hosts=32)
    for switch in range(len(fabric.switches)):
        fabric.routes(switch)
    assert time.monotonic() - started < 5


def test_paths_are_listed_link_by_link() -> None:
    fabric = clos(leaves=2, spines=2, hosts=2)
    assert fabric.paths(0, 1, limit=10) == [["host0-leaf0", "host1-leaf0"]]
    assert fabric.paths(0, 3, limit=10) == [
        ["host0-leaf0", "leaf0-spine0", "leaf1-spine0", "host3-leaf1"],
        ["host0-leaf0", "leaf0-spine1", "leaf1-spine1", "host3-leaf1"],
    ]
    assert len(fabric.paths(0, 3, limit=1)) == 1

"""A fat tree is the smallest Clos that carries its hosts with switches of one radix."""

from collections import Counter

import pytest

from emulator.lab.expansion import expand
from emulator.lab.fat_tree import size_fat_tree
from emulator.lab.topology import Clos, FatTree


def tree(**values: object) -> FatTree:
    given = {"kind": "fat_tree", "host_link": {"rate_gbps": 400}, **values}
    return FatTree.model_validate(given)


def sized(**values: object) -> Clos:
    def refuse(path: object, what: str, remedy: str) -> None:
        pytest.fail(f"{path}: {what}; {remedy}")

    clos = size_fat_tree(tree(**values), refuse)
    assert clos is not None
    return clos


def refusals(**values: object) -> list[str]:
    told: list[str] = []

    def note(_path: object, what: str, remedy: str) -> None:
        told.append(f"{what}; {remedy}")

    assert size_fat_tree(tree(**values), note) is None
    return told


def test_hosts_that_fit_one_switch_are_on_one_switch() -> None:
    clos = sized(hosts=64, radix=64)
    assert (clos.leaves, clos.spines, clos.hosts_per_leaf) == (1, 0, 64)


def test_a_non_blocking_leaf_has_half_its_ports_up() -> None:
    clos = sized(hosts=128, radix=64)
    assert (clos.leaves, clos.hosts_per_leaf) == (4, 32)
    assert clos.fabric_link is not None
    assert clos.spines * clos.fabric_link.parallel == 32
    assert clos.leaves * clos.fabric_link.parallel <= 64


def test_a_full_two_tier_tree_has_half_as_many_spines_as_leaves() -> None:
    """Radix k carries k^2 / 2 hosts. Source: Al-Fares et al., SIGCOMM 2008."""
    clos = sized(hosts=128, radix=16)
    assert (clos.leaves, clos.spines, clos.hosts_per_leaf, clos.pods) == (16, 8, 8, 1)


def test_a_full_three_tier_tree_has_five_quarters_of_the_squared_radix_in_switches() -> None:
    """Radix k carries k^3 / 4 hosts on 5 k^2 / 4 switches. Source: as above."""
    clos = sized(hosts=128, radix=8)
    fabric = expand(clos, lambda *_: pytest.fail("refused"))
    assert (clos.pods, clos.leaves, clos.spines, clos.hosts_per_leaf) == (8, 4, 4, 4)
    assert len(fabric.nics) == 128
    assert len(fabric.switches) == 80


@pytest.mark.parametrize("ratio", [1, 2, 3, 4])
def test_a_leaf_has_the_fewest_uplinks_that_keep_its_oversubscription(ratio: int) -> None:
    clos = sized(hosts=960, radix=64, oversubscription=ratio)
    assert clos.fabric_link is not None
    up = clos.spines * clos.fabric_link.parallel
    assert clos.hosts_per_leaf / up <= ratio < clos.hosts_per_leaf / (up - 1)


def test_faster_uplinks_are_fewer() -> None:
    clos = sized(hosts=96, radix=48, fabric_link={"rate_gbps": 800})
    assert clos.fabric_link is not None
    assert clos.hosts_per_leaf == 2 * clos.spines * clos.fabric_link.parallel


def test_no_switch_has_more_ports_in_use_than_its_radix_and_every_port_one_link() -> None:
    for hosts, radix in ((48, 32), (256, 32), (128, 8), (1024, 64), (96, 16)):
        fabric = expand(tree(hosts=hosts, radix=radix), lambda *_: pytest.fail("refused"))
        assert len(fabric.nics) == hosts
        assert max(switch.ports for switch in fabric.switches) <= radix
        ends = Counter(
            (end.is_switch, end.index, end.port)
            for link in fabric.links
            for end in (link.a, link.b)
        )
        assert set(ends.values()) == {1}


def test_rails_put_nic_i_of_every_host_on_a_leaf_of_its_own() -> None:
    fabric = expand(
        tree(hosts=16, nics_per_host=8, radix=32, wiring="rails"),
        lambda *_: pytest.fail("refused"),
    )
    leaf_of = [entry[0] for entry in fabric.attachment if entry is not None]
    assert leaf_of[:8] == list(range(8))
    assert {nic.host for nic in fabric.nics[:8]} == {"host0"}


def test_what_no_tree_carries_is_refused_with_the_numbers() -> None:
    (told,) = refusals(hosts=61, radix=8)
    assert told == (
        "is 8, with which no Clos of two or three tiers carries 61 hosts with 1 NIC evenly at 1 to "
        "1; give a larger radix or more oversubscription, or 60 or 63 hosts"
    )


def test_leaves_are_at_least_half_full() -> None:
    """62 hosts would be 2 on each of 31 leaves."""
    (told,) = refusals(hosts=62, radix=32)
    assert told.endswith("or 60 or 63 hosts")


def test_too_many_hosts_are_told_how_many_there_can_be() -> None:
    """Radix 8 carries 128 hosts in three tiers."""
    (told,) = refusals(hosts=130, radix=8)
    assert told.endswith("or 128 hosts")

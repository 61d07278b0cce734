"""Hosts without a network of switches: whom each is linked to, at what rate, over which paths."""

from collections import Counter

import pytest

from emulator.lab.direct import expand_direct
from emulator.lab.fabric import Fabric
from emulator.lab.topology import Direct, Link


def fabric(shape: str, hosts: int) -> Fabric:
    link = Link(rate_gbps=420, delay_ns=300)
    return expand_direct(Direct(kind="direct", shape=shape, hosts=hosts, host_link=link))


@pytest.mark.parametrize(("shape", "lines"), [("ring", 2), ("full_mesh", 7)])
def test_the_lines_of_a_host_share_its_rate(shape: str, lines: int) -> None:
    between = [link for link in fabric(shape, 8).links if link.a.is_switch and link.b.is_switch]
    degree = Counter(end.index for link in between for end in (link.a, link.b))
    assert sorted(degree.values()) == [lines] * 8
    assert {link.rate_bps for link in between} == {420_000_000_000 // lines}
    assert {link.delay_ps for link in between} == {300_000}


def test_a_host_reaches_its_own_switch_at_its_whole_rate_without_delay() -> None:
    inside = [link for link in fabric("ring", 5).links if not link.a.is_switch]
    assert {(link.rate_bps, link.delay_ps) for link in inside} == {(420_000_000_000, 0)}


def test_the_opposite_host_of_a_ring_is_reached_both_ways_round() -> None:
    ring = fabric("ring", 6)
    assert len(ring.paths(0, 3, 10)) == 2
    assert [len(path) for path in ring.paths(0, 1, 10)] == [3]


def test_every_host_of_a_full_mesh_is_one_line_away() -> None:
    mesh = fabric("full_mesh", 5)
    assert all(len(mesh.paths(0, other, 10)[0]) == 3 for other in range(1, 5))

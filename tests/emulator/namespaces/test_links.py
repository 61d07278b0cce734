"""A pulled link: its ends, then the whole lab route around it, and back when it is plugged in."""

from collections.abc import Iterator

import pytest

from dataplane.errors import InputError
from emulator.lab import load
from emulator.namespaces import Layout, counters, difference, links_down, set_link
from emulator.namespaces.layout import routes_over
from tests.emulator.namespaces.labs import lab_up, needs_root, udp_socket
from tests.emulator.namespaces.traffic import Receiver, send

PARALLEL = ("leaf0-spine0.0", "leaf0-spine0.1")


@pytest.fixture(scope="module")
def layout() -> Iterator[Layout]:
    with lab_up() as made:
        yield made


def pull(layout: Layout, link: str, *, is_up: bool = False, reroutes: bool = True) -> None:
    set_link(load("netns-clos", [f"name={layout.lab}"]), link, is_up=is_up, reroutes=reroutes)


def arrivals(layout: Layout, source: str = "host4", target: str = "host0") -> int:
    """How many of 200 flows arrive."""
    with Receiver(layout, target, silence_s=0.3) as receiver:
        for flow in range(200):
            with udp_socket(layout, source, 20_000 + flow) as sender:
                send(sender, layout.hosts[target].address, 64)
    return len(receiver.arrivals.sent_ns)


def test_routing_that_knows_avoids_a_spine_without_a_way_down() -> None:
    routes = routes_over(load("netns-clos"), set(PARALLEL))
    towards = {route.destination: route for route in routes["leaf1"]}["198.18.0.1/32"]
    assert {hop.interface for hop in towards.next_hops} == {"port6", "port7"}
    spine = {route.destination: route for route in routes["spine0"]}
    assert [hop.interface for hop in spine["198.18.0.1/32"].next_hops] == ["port2", "port3"]


@pytest.mark.privileged
@needs_root
def test_all_arrives_around_a_pulled_link_and_over_it_again(layout: Layout) -> None:
    for link in PARALLEL:
        pull(layout, link)
    assert links_down(layout) == set(PARALLEL)
    before = counters(layout)
    assert arrivals(layout) == 200
    used = [port.link for port in difference(before, counters(layout)) if port.tx_packets > 2]
    assert not set(PARALLEL) & set(used)
    for link in PARALLEL:
        pull(layout, link, is_up=True)
    assert links_down(layout) == set()
    before = counters(layout)
    assert arrivals(layout) == 200
    used = [port.link for port in difference(before, counters(layout)) if port.tx_packets > 2]
    assert set(PARALLEL) <= set(used)


@pytest.mark.privileged
@needs_root
def test_until_routing_knows_a_spine_without_a_way_down_loses_its_share(layout: Layout) -> None:
    """The leaf behind goes on sending half of the flows there."""
    for link in PARALLEL:
        pull(layout, link, reroutes=False)
    assert 60 < arrivals(layout) < 140
    for link in PARALLEL:
        pull(layout, link, is_up=True, reroutes=False)
    assert arrivals(layout) == 200


@pytest.mark.privileged
@needs_root
def test_a_host_comes_back_with_its_link(layout: Layout) -> None:
    pull(layout, "host0-leaf0")
    with pytest.raises(OSError, match="unreachable"):
        arrivals(layout, source="host0", target="host1")
    assert arrivals(layout) == 0
    pull(layout, "host0-leaf0", is_up=True)
    assert arrivals(layout, source="host0", target="host1") == 200
    assert arrivals(layout) == 200


@pytest.mark.privileged
@needs_root
def test_an_unknown_link_is_told_with_a_likely_one(layout: Layout) -> None:
    with pytest.raises(InputError, match="has no link leaf0-spine0; did you mean leaf0-spine"):
        pull(layout, "leaf0-spine0")

"""An explicit topology is any graph; what can't be a network is refused, each with one message."""

from typing import Any

from emulator.lab.checks import check_lab
from emulator.lab.documents import Document
from emulator.lab.fabric import Fabric
from emulator.lab.model import Lab

PAIR: dict[str, Any] = {
    "kind": "explicit",
    "nics": [{"name": "left"}, {"name": "right"}],
    "switches": [{"name": "tor", "ports": 4}],
    "links": [
        {"ends": ["left", "tor:0"], "rate_gbps": 100},
        {"ends": ["right", "tor:1"], "rate_gbps": 100},
    ],
}


def checked(topology: dict[str, Any], **more: Any) -> tuple[Fabric, list[str]]:
    data = {"name": "pair", "topology": topology, **more}
    fabric, problems = check_lab(Lab.model_validate(data), Document("lab.yaml", data))
    return fabric, [str(problem) for problem in problems]


def links(*ends: tuple[str, str], **values: Any) -> list[dict[str, Any]]:
    return [{"ends": list(pair), "rate_gbps": 100, **values} for pair in ends]


def test_a_cable_adds_five_nanoseconds_a_metre() -> None:
    cabled = links(("left", "tor:0"), ("right", "tor:1"), delay_ns=300, cable_metres=30)
    fabric, problems = checked(PAIR | {"links": cabled})
    assert problems == []
    assert {link.delay_ps for link in fabric.links} == {450_000}


def test_ends_may_use_the_names_of_ports() -> None:
    switches = [{"name": "tor", "ports": 4, "port_names": ["Ethernet0", "Ethernet4"]}]
    named = links(("left", "tor:Ethernet4"), ("right", "tor:Ethernet0"))
    fabric, problems = checked(PAIR | {"switches": switches, "links": named})
    assert problems == []
    assert [link.b.port for link in fabric.links] == [1, 0]


def test_more_names_than_ports_and_a_name_given_twice_are_refused() -> None:
    switches = [{"name": "tor", "ports": 2, "port_names": ["a", "b", "a"]}]
    _, problems = checked(PAIR | {"switches": switches})
    assert problems[0].startswith("lab.yaml: topology.switches.0.port_names: are 3")
    assert "name a twice" in problems[1]


def test_a_link_takes_the_rate_of_its_ends() -> None:
    topology = PAIR | {
        "switches": [{"name": "tor", "ports": 4, "rate_gbps": 200}],
        "links": [{"ends": ["left", "tor:0"]}, {"ends": ["right", "tor:1"], "rate_gbps": 200}],
    }
    fabric, problems = checked(topology)
    assert problems == []
    assert {link.rate_bps for link in fabric.links} == {200_000_000_000}


def test_unequal_ends_of_a_link_are_one_message_with_both_rates() -> None:
    topology = PAIR | {
        "nics": [{"name": "left", "rate_gbps": 100}, {"name": "right", "rate_gbps": 400}],
        "switches": [{"name": "tor", "ports": 4, "rate_gbps": 400}],
        "links": [{"ends": ["left", "tor:0"]}, {"ends": ["right", "tor:1"]}],
    }
    assert checked(topology)[1] == [
        "lab.yaml: topology.links.0.ends: have unequal rates: left has 100, tor:0 has 400 Gb/s; "
        "give both ends and the link one rate"
    ]


def test_a_link_without_any_rate_is_refused() -> None:
    topology = PAIR | {"links": [{"ends": ["left", "tor:0"]}, *links(("right", "tor:1"))]}
    assert "topology.links.0.rate_gbps: is missing" in checked(topology)[1][0]


def test_a_node_linked_to_itself_is_refused() -> None:
    topology = PAIR | {"links": [*PAIR["links"], *links(("tor:2", "tor:3"))]}
    assert checked(topology)[1] == [
        "lab.yaml: topology.links.2.ends: connect tor to itself; name two nodes"
    ]


def test_a_link_given_twice_is_refused_for_its_ports() -> None:
    topology = PAIR | {"links": [*PAIR["links"], *links(("tor:0", "left"))]}
    (told,) = checked(topology)[1]
    assert "port 0 of tor, which links.0 uses already" in told


def test_several_links_between_two_switches_are_no_mistake() -> None:
    topology = {
        "kind": "explicit",
        "nics": [{"name": "left"}, {"name": "right"}],
        "switches": [{"name": "west", "ports": 3}, {"name": "east", "ports": 3}],
        "links": links(
            ("left", "west:0"), ("right", "east:0"), ("west:1", "east:1"), ("west:2", "east:2")
        ),
    }
    fabric, problems = checked(topology)
    assert problems == []
    assert fabric.routes(0)[1] == [1, 2]


def test_a_ring_of_switches_is_a_network_with_loop_free_routes() -> None:
    names = ["s0", "s1", "s2", "s3"]
    around = [(f"s{i}:1", f"s{(i + 1) % 4}:2") for i in range(4)]
    topology = {
        "kind": "explicit",
        "nics": [{"name": f"n{i}"} for i in range(4)],
        "switches": [{"name": name, "ports": 3} for name in names],
        "links": links(*[(f"n{i}", f"s{i}:0") for i in range(4)], *around),
    }
    fabric, problems = checked(topology)
    assert problems == []
    assert {len(path) for path in fabric.paths(0, 2, limit=10)} == {4}


def test_a_host_without_a_link_is_one_message() -> None:
    topology = PAIR | {"links": PAIR["links"][:1]}
    assert checked(topology)[1] == [
        "lab.yaml: topology.links: leaves right without a link; link every NIC to a switch port"
    ]


def test_a_rank_behind_another_island_of_switches_is_one_message() -> None:
    topology = PAIR | {
        "switches": [{"name": "west", "ports": 2}, {"name": "east", "ports": 2}],
        "links": links(("left", "west:0"), ("right", "east:0")),
    }
    (told,) = checked(topology)[1]
    assert "no path from west to right (rank 1)" in told


def test_a_buffer_smaller_than_its_headrooms_is_one_message() -> None:
    (told,) = checked(PAIR, switches={"buffer_bytes": 10_000})[1]
    assert "switches.buffer_bytes: is 10000, but tor sets aside" in told
    assert "give at least" in told

"""InfraGraph infrastructures, against the package's own blueprints and its own expansion."""

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import networkx
import pytest
from infragraph import Infrastructure
from infragraph.blueprints.devices.generic.generic_switch import Switch
from infragraph.blueprints.devices.generic.server import Server
from infragraph.blueprints.devices.nvidia.cx5 import Cx5
from infragraph.blueprints.devices.nvidia.dgx import NvidiaDGX
from infragraph.blueprints.fabrics.clos_fat_tree_fabric import ClosFatTreeFabric
from infragraph.blueprints.fabrics.closfabric import ClosFabric
from infragraph.blueprints.fabrics.dragonfly_fabric import DragonflyFabric
from infragraph.blueprints.fabrics.single_tier_fabric import SingleTierFabric
from infragraph.infragraph_service import InfraGraphService

from dataplane.errors import InputError
from emulator.exchange import ImportedLab, import_lab
from emulator.lab.fabric import End

BLUEPRINTS = {
    "clos": ClosFabric,
    "fat-tree-2": lambda: ClosFatTreeFabric(Switch(8), Server(1), 2, [100, 200]),
    "fat-tree-3": lambda: ClosFatTreeFabric(Switch(4), Server(1), 3, [100, 200, 400]),
    "single-tier": lambda: SingleTierFabric(NvidiaDGX("dgx_h100"), 4),
    "dragonfly": lambda: DragonflyFabric(Switch(16), Server(), 4, 2, 2),
}


def imported(infrastructure: Any, directory: Path, binding: str | None = None) -> ImportedLab:
    file = directory / "fabric.yaml"
    file.write_text(infrastructure.serialize("yaml"))
    bound = None
    if binding is not None:
        bound = directory / "binding.yaml"
        bound.write_text(binding)
    return import_lab(file, bound)


def expanded(infrastructure: Any) -> networkx.Graph:
    service = InfraGraphService()
    service.set_graph(infrastructure)
    graph: networkx.Graph = service.get_networkx_graph()
    return graph


def cables(graph: networkx.Graph) -> Iterator[tuple[str, str, dict[str, str]]]:
    """Edges between two devices."""
    for a, b, attributes in graph.edges(data=True):
        if a.split(".")[:2] != b.split(".")[:2]:
            yield a, b, attributes


@pytest.mark.parametrize("name", BLUEPRINTS)
def test_a_blueprint_has_as_many_links_of_each_rate_as_its_own_package_expands(
    name: str, tmp_path: Path
) -> None:
    made = imported(BLUEPRINTS[name](), tmp_path)
    wanted = sorted(item["bandwidth"] for _, _, item in cables(expanded(BLUEPRINTS[name]())))
    assert sorted(f"{link.rate_bps / 1e9:g} Gbps" for link in made.fabric.links) == wanted


@pytest.mark.parametrize("name", BLUEPRINTS)
def test_a_blueprint_links_the_same_ports_as_its_own_package(name: str, tmp_path: Path) -> None:
    made = imported(BLUEPRINTS[name](), tmp_path)
    graph = expanded(BLUEPRINTS[name]())
    ports = {end for cable in cables(graph) for end in cable[:2]}
    nics = {end for end in ports if ".port." not in end}
    assert len(made.fabric.nics) == len(nics)
    assert len(made.fabric.switches) == len({end.rsplit(".", 2)[0] for end in ports - nics})
    wanted = sorted(
        sorted(int(end.rsplit(".", 1)[1]) for end in cable[:2] if ".port." in end)
        for cable in cables(graph)
    )
    found = sorted(
        sorted(end.port for end in (link.a, link.b) if end.is_switch) for link in made.fabric.links
    )
    assert found == wanted


def test_ranks_follow_instances_and_nics(tmp_path: Path) -> None:
    made = imported(ClosFabric(), tmp_path)
    assert [nic.name for nic in made.fabric.nics][:3] == ["host0-nic0", "host0-nic1", "host1-nic0"]
    assert made.fabric.nics[1].host == "host0"


def test_a_nic_that_is_a_device_of_its_own_is_found_by_its_ports(tmp_path: Path) -> None:
    """As composed devices are written: a server with CX-5 cards, each with two ports."""
    card, server = Cx5(variant="cx5_100g_dual"), Infrastructure().devices.add(name="box")
    server.components.add(name="cpu", count=1).choice = "cpu"
    server.components.add(name=card.name, count=2).choice = "device"
    server.links.add(name="pcie")
    inner = server.edges.add(scheme="many2many", link="pcie")
    inner.ep1.component, inner.ep2.component = "cpu", f"{card.name}.pcie_endpoint"
    whole = Infrastructure(name="composed")
    whole.devices.append(server).append(card).append(Switch(4))
    whole.instances.add(name="box", device="box", count=2)
    whole.instances.add(name="tor", device="switch", count=1)
    whole.links.add(name="cable").physical.bandwidth.gigabytes_per_second = 12.5
    port = next(item.name for item in card.components if item.choice == "port")
    for index in range(4):
        edge = whole.edges.add(scheme="one2one", link="cable")
        edge.ep1.instance = f"box[{index // 2}]"
        edge.ep1.component = f"{card.name}[{index % 2}].{port}[1]"
        edge.ep2.instance, edge.ep2.component = "tor", f"port[{index}]"
    made = imported(whole, tmp_path, "roles: [{kind: box, role: host}]\n")
    assert [nic.host for nic in made.fabric.nics] == ["box0", "box0", "box1", "box1"]
    assert {link.rate_bps for link in made.fabric.links} == {100_000_000_000}
    assert len(made.fabric.switches) == 1


def test_json_is_read_as_yaml_is(tmp_path: Path) -> None:
    file = tmp_path / "fabric.json"
    text = json.dumps(ClosFabric().serialize("dict"), indent="\t")
    file.write_text(text)
    assert len(import_lab(file).fabric.links) == 20


PAIR: dict[str, Any] = {
    "name": "pair",
    "devices": [
        {"name": "box", "components": [{"name": "nic", "count": 2, "choice": "nic"}]},
        {"name": "sw", "components": [{"name": "port", "count": 4, "choice": "port"}]},
    ],
    "instances": [
        {"name": "box", "device": "box", "count": 2},
        {"name": "tor", "device": "sw", "count": 1},
    ],
    "links": [
        {
            "name": "cable",
            "physical": {"bandwidth": {"gigabits_per_second": 200}, "latency": {"us": 0.4}},
        }
    ],
    "edges": [
        {
            "ep1": {"instance": "box", "component": "nic[0]"},
            "ep2": {"instance": "tor[0]", "component": "port[1:3]"},
            "link": "cable",
            "scheme": "one2one",
        }
    ],
}


def pair(directory: Path, **edge: Any) -> ImportedLab:
    document = json.loads(json.dumps(PAIR))
    document["edges"][0] |= edge
    file = directory / "pair.json"
    file.write_text(json.dumps(document))
    return import_lab(file)


def test_slices_pair_in_order_and_latency_is_the_delay(tmp_path: Path) -> None:
    made = pair(tmp_path)
    assert [(link.a, link.b) for link in made.fabric.links] == [
        (End(False, 0, 0), End(True, 0, 1)),
        (End(False, 1, 0), End(True, 0, 2)),
    ]
    assert {link.delay_ps for link in made.fabric.links} == {400_000}


@pytest.mark.parametrize(
    ("edge", "said"),
    [
        ({"scheme": "ring"}, "edges.0.scheme: is ring, which does not say what is linked"),
        ({"scheme": "many2many"}, "uses port 0 of box0, which links.0 uses already"),
        ({"link": "wire"}, "gives no rate to 2 links"),
        ({"ep1": {"instance": "bax", "component": "nic"}}, "edges.0.ep1.instance: names bax"),
        ({"ep1": {"instance": "box[2]", "component": "nic"}}, "is box[2], and there are 2"),
        ({"ep1": {"instance": "box", "component": "gpu"}}, "names gpu, which the device box does"),
        ({"ep1": {"instance": "box", "component": "nic[x]"}}, "is nic[x], and there are 2"),
        ({"ep1": {"instance": "box"}}, "edges.0.ep1.component: is missing"),
        (
            {"ep1": {"instance": "box[0]", "component": "nic[0]"},
             "ep2": {"instance": "box[1]", "component": "nic[0]"}},
            "gives no",
        ),
    ],
)  # fmt: skip
def test_a_wrong_edge_is_told_with_its_place(
    edge: dict[str, Any], said: str, tmp_path: Path
) -> None:
    if said == "gives no":
        assert len(pair(tmp_path, **edge).fabric.links) == 1
        return
    with pytest.raises(InputError, match=r"pair\.json: line 1: ") as caught:
        pair(tmp_path, **edge)
    assert said in str(caught.value)


def test_a_file_cannot_make_the_import_grow_without_bounds(tmp_path: Path) -> None:
    document = json.loads(json.dumps(PAIR))
    document["instances"][0]["count"] = document["devices"][0]["components"][0]["count"] = 65_536
    document["edges"][0] |= {"scheme": "many2many", "ep1": {"instance": "box", "component": "nic"}}
    file = tmp_path / "bomb.json"
    file.write_text(json.dumps(document))
    with pytest.raises(InputError, match="are more than 65536"):
        import_lab(file)


def test_devices_alone_are_no_lab(tmp_path: Path) -> None:
    """As translators write them: a server, one instance of it, no edges."""
    alone = Infrastructure(name="alone")
    alone.devices.append(NvidiaDGX("dgx_a100"))
    alone.instances.add(name="dgx", device="dgx_a100", count=1)
    with pytest.raises(InputError, match="has no host with a link"):
        imported(alone, tmp_path)

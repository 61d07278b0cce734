"""What is exported and imported again with its binding is the same lab."""

import warnings
from pathlib import Path

import pytest
import yaml
from infragraph import Infrastructure
from infragraph.infragraph_service import InfraGraphService

from emulator.exchange import EXPORT_FORMATS, Images, export_lab, import_lab
from emulator.lab import LoadedLab, load
from emulator.lab.fabric import Fabric

LABS = ("loopback-clos", "explicit-example", "rail-optimised", "clos-three-tier")


def graph(fabric: Fabric) -> tuple[object, ...]:
    """Everything of a fabric but the names of its links, which are made from its nodes' names."""
    links = [(link.a, link.b, link.rate_bps, link.delay_ps) for link in fabric.links]
    return fabric.nics, fabric.switches, links


def there_and_back(loaded: LoadedLab, file_format: str, directory: Path) -> LoadedLab:
    made = export_lab(loaded, file_format)
    (directory / "file.yaml").write_text(made.text)
    (directory / "binding.yaml").write_text(made.binding_text)
    back = import_lab(directory / "file.yaml", directory / "binding.yaml")
    (directory / "back.yaml").write_text(back.text)
    return load(directory / "back.yaml")


@pytest.mark.parametrize("file_format", EXPORT_FORMATS)
@pytest.mark.parametrize("name", LABS)
def test_a_lab_comes_back_with_the_same_graph_and_settings(
    name: str, file_format: str, tmp_path: Path
) -> None:
    loaded = load(name)
    back = there_and_back(loaded, file_format, tmp_path)
    assert graph(back.fabric) == graph(loaded.fabric)
    without = {"topology"}
    assert back.lab.model_dump(exclude=without) == loaded.lab.model_dump(exclude=without)


@pytest.mark.parametrize("file_format", EXPORT_FORMATS)
def test_what_came_from_a_file_is_exported_as_it_came(file_format: str, tmp_path: Path) -> None:
    """A second journey changes nothing more."""
    once = there_and_back(load("rail-optimised"), file_format, tmp_path)
    assert export_lab(once, file_format) == export_lab(
        there_and_back(once, file_format, tmp_path), file_format
    )


@pytest.mark.parametrize("name", LABS)
def test_without_its_binding_the_graph_is_the_same_in_all_but_names(
    name: str, tmp_path: Path
) -> None:
    loaded = load(name)
    (tmp_path / "file.yaml").write_text(export_lab(loaded, "infragraph").text)
    back = import_lab(tmp_path / "file.yaml")
    assert graph(back.fabric)[2] == graph(loaded.fabric)[2]


@pytest.mark.parametrize("name", LABS)
def test_the_package_infragraph_accepts_an_export_and_finds_it_connected(name: str) -> None:
    loaded = load(name)
    document = Infrastructure().deserialize(export_lab(loaded, "infragraph").text)
    service = InfraGraphService()
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        service.set_graph(document)
    network = service.get_networkx_graph()
    cables = [e for e in network.edges if e[0].split(".")[:2] != e[1].split(".")[:2]]
    assert len(cables) == len(loaded.fabric.links)
    assert len(service.get_endpoints("type", "nic")) == len(loaded.fabric.nics)
    ports = sum(switch.ports for switch in loaded.fabric.switches)
    assert len(service.get_endpoints("type", "port")) == ports


def test_json_holds_what_yaml_holds() -> None:
    loaded = load("loopback-clos")
    texts = [export_lab(loaded, "infragraph", as_json=as_json).text for as_json in (True, False)]
    assert yaml.safe_load(texts[0]) == yaml.safe_load(texts[1])


def test_a_containerlab_export_names_interfaces_as_the_kind_does() -> None:
    loaded = load("loopback-clos")
    srl = Images(switch_kind="nokia_srlinux", switch_image="ghcr.io/nokia/srlinux")
    document = yaml.safe_load(export_lab(loaded, "containerlab", images=srl).text)
    assert document["topology"]["links"][0]["endpoints"] == ["host0:eth1", "leaf0:e1-1"]
    assert document["topology"]["nodes"]["leaf0"] == {"kind": "nokia_srlinux"}
    assert document["topology"]["kinds"]["nokia_srlinux"] == {"image": "ghcr.io/nokia/srlinux"}


MANAGED = """\
name: managed
topology:
  kind: explicit
  nics: [{name: h0}, {name: h1}]
  switches: [{name: tor, ports: 2, management_address: ADDRESS}]
  links:
    - {ends: [h0, "tor:0"], rate_gbps: 400, delay_ns: 500}
    - {ends: [h1, "tor:1"], rate_gbps: 400, delay_ns: 500}
"""


@pytest.mark.parametrize(
    ("address", "management"),
    [
        ("172.20.20.40", None),
        ("10.1.2.40", "10.1.2.0/24"),
        ("10.1.2.1", "10.1.0.0/22"),
    ],
)
def test_the_management_network_holds_the_nodes_addresses(
    address: str, management: str | None, tmp_path: Path
) -> None:
    """Containerlab deploys no node whose address is outside of it, or is the bridge's."""
    path = tmp_path / "managed.yaml"
    path.write_text(MANAGED.replace("ADDRESS", address))
    document = yaml.safe_load(export_lab(load(str(path)), "containerlab").text)
    assert document["topology"]["nodes"]["tor"]["mgmt-ipv4"] == address
    assert document.get("mgmt", {}).get("ipv4-subnet") == management


def test_a_management_name_that_containerlab_has_no_place_for_is_in_the_binding(
    tmp_path: Path,
) -> None:
    path = tmp_path / "managed.yaml"
    path.write_text(MANAGED.replace("ADDRESS", "tor.rack1.lab"))
    exported = export_lab(load(str(path)), "containerlab")
    assert yaml.safe_load(exported.text)["topology"]["nodes"]["tor"] == {"kind": "sonic-vs"}
    (switch,) = yaml.safe_load(exported.binding_text)["switches"]
    assert switch["management_address"] == "tor.rack1.lab"

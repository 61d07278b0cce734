"""containerlab topologies: inheritance, every form of link, and what the binding adds."""

from collections.abc import Callable, Sequence
from pathlib import Path

import pytest

from dataplane.errors import InputError
from emulator.cli import main
from emulator.exchange import ImportedLab, import_lab

# As data centre labs are written: kinds with images, spine and leaf groups, addresses of the
# management network, hosts with two NICs, and a collector that is no part of the fabric.
FABRIC = """\
name: ai_pod.1
mgmt: {network: pod, ipv4-subnet: 172.80.80.0/24}
topology:
  defaults: {kind: nokia_srlinux, env: {A: b}}
  kinds:
    nokia_srlinux: {type: ixrd3, image: ghcr.io/nokia/srlinux}
    linux: {image: ghcr.io/hellt/network-multitool, group: servers}
  groups:
    spines: {type: ixr6e}
    servers: {kind: linux}
  nodes:
    spine1: {group: spines, mgmt-ipv4: 172.80.80.11}
    leaf1: {mgmt-ipv4: 172.80.80.21}
    leaf2:
    gpu1: {kind: linux}
    gpu2: {group: servers}
    collector: {kind: linux, ports: [3000:3000]}
  links:
    - endpoints: ["gpu1:eth1", "leaf1:e1-1"]
    - endpoints: ["gpu1:eth2", "leaf1:e1-2"]
    - endpoints: ["gpu2:eth1", "leaf2:e1-10"]
      mtu: 9500
    - type: veth
      endpoints:
        - {node: gpu2, interface: eth2, mac: "02:00:00:00:00:01"}
        - {node: leaf2, interface: e1-2}
    - endpoints: ["leaf1:e1-49", "spine1:e1-1"]
      vars: {rate_gbps: 800, delay_ns: 700}
    - endpoints: ["leaf2:e1-49", "spine1:e1-2"]
      vars: {rate_gbps: 800}
    - endpoints: ["leaf1:e1-50", "host:leaf1_e1-50"]
    - endpoints: ["leaf1:e1-51", "mgmt-net:leaf1_e1-51"]
    - {type: macvlan, endpoint: {node: leaf1, interface: e1-52}, host-interface: eno1}
    - {type: vxlan-stitch, endpoint: {node: leaf2, interface: e1-52}, remote: 10.0.0.1, vni: 7}
"""
BINDING = """\
links: [{between: ["gpu*", "leaf*"], rate_gbps: 400, delay_ns: 300, cable_metres: 4}]
"""

Import = Callable[..., ImportedLab]


@pytest.fixture
def imported(tmp_path: Path) -> Import:
    def make(topology: str = FABRIC, binding: str | None = BINDING) -> ImportedLab:
        file, bound = tmp_path / "pod.clab.yml", tmp_path / "binding.yaml"
        file.write_text(topology)
        bound.write_text(binding or "")
        return import_lab(file, bound if binding else None)

    return make


def problems(imported: Import, topology: str = FABRIC, binding: str | None = BINDING) -> list[str]:
    with pytest.raises(InputError) as caught:
        imported(topology, binding)
    return str(caught.value).splitlines()


def nics(made: ImportedLab) -> dict[str, int]:
    return {nic.name: nic.rank for nic in made.fabric.nics}


def rates(made: ImportedLab) -> Sequence[float]:
    return [link.rate_bps / 1e9 for link in made.fabric.links]


def test_kinds_defaults_and_groups_decide_what_is_a_host(imported: Import) -> None:
    made = imported()
    assert [switch.name for switch in made.fabric.switches] == ["spine1", "leaf1", "leaf2"]
    assert {nic.host for nic in made.fabric.nics} == {"gpu1", "gpu2"}


def test_every_linked_interface_of_a_host_is_a_nic_in_the_order_of_the_file(
    imported: Import,
) -> None:
    assert nics(imported()) == {"gpu1-eth1": 0, "gpu1-eth2": 1, "gpu2-eth1": 2, "gpu2-eth2": 3}


def test_short_and_extended_links_are_read_and_those_to_the_outside_left_out(
    imported: Import,
) -> None:
    made = imported()
    assert len(made.fabric.links) == 6
    assert "4 links to the outside of the topology are left out" in made.notes


def test_a_node_without_a_link_is_left_out_and_said(imported: Import) -> None:
    assert "no link is on collector: left out" in imported().notes


def test_rates_come_from_vars_and_the_binding(imported: Import) -> None:
    made = imported()
    assert rates(made) == [400, 400, 400, 400, 800, 800]
    delays = [link.delay_ps // 1000 for link in made.fabric.links]
    assert delays == [320, 320, 320, 320, 700, 500]


def test_ports_are_numbered_by_their_names_and_keep_them(imported: Import) -> None:
    made = imported()
    text = made.text
    assert "port_names: [e1-1, e1-2, e1-49]" in text
    assert "port_names: [e1-2, e1-10, e1-49]" in text
    assert "management_address: 172.80.80.21" in text


def test_the_name_of_the_lab_is_made_legal(imported: Import) -> None:
    assert imported().lab.name == "ai-pod-1"


def test_a_binding_names_ranks_addresses_ports_and_all_other_settings(imported: Import) -> None:
    binding = (
        BINDING
        + """\
name: bound
nics:
  - {at: "gpu2:eth2", rank: 0, address: 198.18.7.1, name: first}
switches:
  - {at: leaf1, ports: 64, port_names: [e1-49, e1-1, e1-2]}
lab: {time_dilation: 40, switches: {ecn: {preset: hpcc}}}
"""
    )
    made = imported(binding=binding)
    assert made.lab.name == "bound"
    assert made.lab.time_dilation == 40
    assert nics(made) == {"first": 0, "gpu1-eth1": 1, "gpu1-eth2": 2, "gpu2-eth1": 3}
    assert made.fabric.nics[0].address == "198.18.7.1"
    leaf = next(switch for switch in made.fabric.switches if switch.name == "leaf1")
    assert leaf.ports == 64
    assert [link.b.port for link in made.fabric.links[:2]] == [1, 2]


def test_roles_make_a_router_of_a_linux_node_and_ignore_what_is_no_fabric(
    imported: Import,
) -> None:
    binding = """\
roles:
  - {nodes: gpu1, role: ignored}
  - {kind: linux, group: servers, role: host}
links: [{rate_gbps: 100}]
"""
    made = imported(binding=binding)
    assert nics(made) == {"gpu2-eth1": 0, "gpu2-eth2": 1}
    assert any("gpu1" in note and "ignored" in note for note in made.notes)


def test_a_missing_rate_is_one_message_with_the_way_out(imported: Import) -> None:
    (told,) = problems(imported, binding=None)
    assert "pod.clab.yml: line 19: topology.links.0: gives no rate to 4 links" in told
    assert "gpu1:eth1 - leaf1:e1-1" in told
    assert "--binding" in told


@pytest.mark.parametrize(
    ("was", "wrong", "said"),
    [
        ('"leaf1:e1-1"', '"leef1:e1-1"', "line 19: topology.links.0.endpoints.1: names the node"),
        ('"leaf1:e1-1"', '"leaf1"', "is 'leaf1'; write node:interface"),
        ('"leaf1:e1-2"', '"leaf1:e1-1"', "which links.0 uses already"),
        ('"leaf1:e1-1"', '"leaf1:e1-1", "leaf2:e1-1"', "are 3; give two"),
        ("rate_gbps: 800, delay", "rate_gbps: fast, delay", "is 'fast'; write a number"),
        ("nodes:", "knots:", "is neither a containerlab topology nor an InfraGraph"),
    ],
)
def test_a_wrong_topology_is_told_with_its_line(
    imported: Import, was: str, wrong: str, said: str
) -> None:
    assert said in problems(imported, FABRIC.replace(was, wrong, 1))[0]


@pytest.mark.parametrize(
    ("line", "said"),
    [
        ("rols: []", "line 2: rols: is not a known key; did you mean roles?"),
        ('nics: [{at: "gpu1:eth9"}]', "is gpu1:eth9, which is no linked interface of a host"),
        ('nics: [{at: "gpu1:eth1", rank: 9}]', "lack rank 3"),
        (
            'nics: [{at: "gpu1:eth1", address: 10.0.0.1}]',
            "binding.yaml: line 2: topology.nics.0.ad",
        ),
        ("switches: [{at: leaf1, port_names: [e1-1]}]", "lack e1-2, e1-49, which links use"),
        ("switches: [{at: leaf9}]", "is leaf9, which is no linked switch"),
        ("roles: [{nodes: x*, role: host}]", "line 2: roles.0: fits no node"),
        ("lab: {topology: {}}", "line 2: lab.topology: is not for `lab`"),
        ("lab: {swiches: {}}", "binding.yaml: line 2: swiches: is not a known key"),
        ("lab: {switches: {buffer_bytes: 10_000}}", "binding.yaml: line 2: switches.buffer_bytes"),
    ],
)
def test_a_wrong_binding_is_told_with_its_line(imported: Import, line: str, said: str) -> None:
    told = problems(imported, binding=BINDING + line + "\n")
    assert any(said in problem for problem in told), told


def test_a_link_rule_that_fits_nothing_is_a_mistake(imported: Import) -> None:
    told = problems(imported, binding='links: [{rate_gbps: 9}, {between: ["x", "y"]}]\n')
    assert any("links.1: fits no link" in problem for problem in told)


def test_a_topology_of_switches_alone_is_asked_for_its_hosts(imported: Import) -> None:
    switches = FABRIC.replace("linux", "arista_ceos")
    told = problems(imported, switches, "links: [{rate_gbps: 100}]\n")
    assert told[0].endswith(
        "pod.clab.yml: has no host with a link; say what hosts are in a binding "
        "file: `roles: [{nodes: NAME, role: host}]`"
    )
    made = imported(switches, 'links: [{rate_gbps: 100}]\nroles: [{nodes: "gpu*", role: host}]\n')
    assert len(made.fabric.nics) == 4


def test_an_imported_lab_can_be_predicted(imported: Import, tmp_path: Path) -> None:
    lab = tmp_path / "lab.yaml"
    lab.write_text(imported().text)
    words = ["predict", str(lab), "--size-scale", "0.001", "--out", str(tmp_path / "run")]
    assert main(words) == 0
    assert "gpu1-eth1" in (tmp_path / "run" / "report.html").read_text()

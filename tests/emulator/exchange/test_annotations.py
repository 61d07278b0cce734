"""InfraGraph's own way of saying ranks and addresses, out and in again."""

from pathlib import Path

import pytest
import yaml
from infragraph import Infrastructure
from infragraph.infragraph_service import InfraGraphService

from dataplane.errors import InputError
from emulator.cli import main
from emulator.exchange import ImportedLab, export_lab, import_lab
from emulator.lab import load

LAB = "rail-optimised"


def imported(directory: Path, *annotations: tuple[str, str, str]) -> ImportedLab:
    """The lab's graph with annotations of (node, attribute, value)."""
    entries = [
        {"name": name, "attributes": [{"attribute": attribute, "value": value}]}
        for name, attribute, value in annotations
    ]
    (directory / "file.yaml").write_text(export_lab(load(LAB), "infragraph").text)
    (directory / "binding.yaml").write_text(yaml.safe_dump({"annotations": entries}))
    return import_lab(directory / "file.yaml", directory / "binding.yaml")


def test_the_package_takes_them_and_finds_every_rank_and_address() -> None:
    loaded = load(LAB)
    made = export_lab(loaded, "infragraph")
    service = InfraGraphService()
    service.set_graph(Infrastructure().deserialize(made.text))
    service.annotate_graph(made.annotation_text)
    for nic in loaded.fabric.nics:
        host, number = divmod(nic.rank, 8)
        assert service.get_endpoints("rank", str(nic.rank)) == [f"host.{host}.xpu.{number}"]
        assert service.get_endpoints("ipaddress", nic.address) == [f"host.{host}.nic.{number}"]


def test_in_a_binding_they_decide_ranks_and_addresses(tmp_path: Path) -> None:
    made = imported(
        tmp_path,
        ("host[1]xpu[3]", "rank", "0"),
        ("host.2.nic.5", "rank", "1"),
        ("host[1]nic[3]", "ipaddress", "198.18.9.9/24"),
        ("host[0]", "rack", "r7"),
    )
    assert [nic.name for nic in made.fabric.nics[:3]] == ["host1-nic3", "host2-nic5", "host0-nic0"]
    assert made.fabric.nics[0].address == "198.18.9.9"


def test_an_exported_file_of_them_is_a_binding_s_part(tmp_path: Path) -> None:
    loaded = load(LAB)
    made = export_lab(loaded, "infragraph")
    (tmp_path / "file.yaml").write_text(made.text)
    nodes = yaml.safe_load(made.annotation_text)["nodes"]
    (tmp_path / "binding.yaml").write_text(yaml.safe_dump({"annotations": nodes}))
    back = import_lab(tmp_path / "file.yaml", tmp_path / "binding.yaml")
    assert back.fabric.nics == loaded.fabric.nics


@pytest.mark.parametrize(
    ("annotation", "said"),
    [
        (("host[9]nic[0]", "rank", "0"), "names host[9]nic[0], which is no linked NIC"),
        (("host[-1]nic[0]", "rank", "0"), "names host[-1]nic[0], which is no linked NIC"),
        (("host[0]xpu[0]", "ipaddress", "198.18.0.1"), "names host[0]xpu[0]"),
        (("host[0]xpu[0]", "rank", "first"), "gives host[0]xpu[0] the rank 'first'"),
        (("host[0]nic[0]", "ipaddress", "10.0.0.1"), "address: is 10.0.0.1, outside the lab's"),
        (("host[0]nic[0:2]", "ipaddress", "198.18.0.1"), "which another NIC has"),
    ],
)
def test_a_wrong_annotation_is_told_with_its_line(
    annotation: tuple[str, str, str], said: str, tmp_path: Path
) -> None:
    with pytest.raises(InputError, match=r"binding\.yaml: line 2") as caught:
        imported(tmp_path, annotation)
    assert said in str(caught.value)


def test_they_are_written_for_infragraph_only(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    file = tmp_path / "annotations.yaml"
    words = ["lab", "export", LAB, "--annotations", str(file), "--format"]
    assert main([*words, "infragraph"]) == 0
    assert yaml.safe_load(file.read_text())["nodes"]
    assert main([*words, "containerlab", "--force"]) == 2
    assert "--annotations: are InfraGraph's" in capsys.readouterr().err

"""`rankwire lab show --svg` draws, and `lab show` leads to drawing and paths."""

import json
import xml.etree.ElementTree as ET
from pathlib import Path

import pytest

from emulator.cli import main
from emulator.lab import list_labs


@pytest.mark.parametrize("name", sorted(list_labs()))
def test_every_lab_that_comes_with_rankwire_can_be_drawn(name: str, tmp_path: Path) -> None:
    file = tmp_path / "lab.svg"
    assert main(["lab", "show", name, "--svg", str(file)]) == 0
    root = ET.parse(file).getroot()  # noqa: S314
    assert root.findtext("{http://www.w3.org/2000/svg}title") == name


def test_a_dash_is_stdout(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["lab", "show", "single-switch", "--svg", "-", "--theme", "dark"]) == 0
    assert capsys.readouterr().out.startswith("<svg ")


def test_a_file_that_cannot_be_written_is_told(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["lab", "show", "single-switch", "--svg", str(tmp_path / "none" / "a.svg")]) == 2
    assert "can't be written" in capsys.readouterr().err


def test_lab_show_leads_to_the_paths_and_the_drawing(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["lab", "show", "loopback-clos"]) == 0
    said = capsys.readouterr().out.splitlines()[-2:]
    assert said[0].startswith("rankwire lab paths loopback-clos 0 7 ")
    assert "--svg FILE" in said[1]


def test_paths_are_drawn_or_told_as_json(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    words = ["lab", "paths", "loopback-clos", "0", "5"]
    assert main([*words, "--svg", str(tmp_path / "paths.svg")]) == 0
    assert 'class="hot"' in (tmp_path / "paths.svg").read_text()
    assert main([*words, "--json"]) == 0
    told = json.loads(capsys.readouterr().out)
    assert told["complete"]
    assert len(told["paths"]) == 8
    assert {path["delay_ns"] for path in told["paths"]} == {2 * 500 + 2 * 600}
    assert main(words) == 0
    listed = capsys.readouterr().out.splitlines()
    assert [line.split("  ") for line in listed] == [path["links"] for path in told["paths"]]

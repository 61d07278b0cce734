"""`rankwire lab import` and `lab export`: files in, files out, nothing replaced unasked."""

from pathlib import Path

import pytest

from emulator.cli import main


def export(directory: Path, *more: str) -> int:
    words = ["lab", "export", "explicit-example", "--format", "containerlab"]
    out = ["--out", str(directory / "file.clab.yml"), "--binding", str(directory / "binding.yaml")]
    return main([*words, *out, *more])


def test_a_lab_goes_out_and_comes_back(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert export(tmp_path) == 0
    back = tmp_path / "back.yaml"
    files = [str(tmp_path / "file.clab.yml"), "--binding", str(tmp_path / "binding.yaml")]
    assert main(["lab", "import", *files, "--out", str(back)]) == 0
    said = capsys.readouterr()
    assert said.out == ""
    assert said.err == "rankwire: 4 NICs, 2 switches, 5 links\n"
    assert main(["lab", "check", str(back)]) == 0


def test_without_out_the_lab_is_printed(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    export(tmp_path)
    assert main(["lab", "import", str(tmp_path / "file.clab.yml")]) == 0
    assert "kind: explicit" in capsys.readouterr().out


def test_files_that_are_there_are_replaced_by_force_only(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    export(tmp_path)
    (tmp_path / "binding.yaml").write_text("mine")
    assert export(tmp_path) == 2
    assert f"{tmp_path / 'binding.yaml'}: is there already; " in capsys.readouterr().err
    assert (tmp_path / "binding.yaml").read_text() == "mine"
    assert export(tmp_path, "--force") == 0
    assert (tmp_path / "binding.yaml").read_text() != "mine"


def test_a_directory_that_is_not_there_is_told(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert export(tmp_path / "none") == 2
    assert "can't be written" in capsys.readouterr().err

"""`rankwire compare` and `rankwire report`: output and exit status."""

import json
from pathlib import Path

import pytest

from emulator.cli import main
from metrics.records import write_records
from tests.metrics.synthetic import Run, moe_run


def recorded(directory: Path, run: Run) -> str:
    """Write a synthetic run; its directory as the command takes it."""
    write_records(
        directory,
        run={"command": "predict", "lab": "test"},
        programs=run.programs,
        instances=run.instances,
        config=run.config,
        engine=run.engine,
    )
    return str(directory)


def test_equal_runs_compare_with_status_0(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Tables on stdout, the page beside the second run."""
    first, second = (recorded(tmp_path / name, moe_run()) for name in "ab")
    assert main(["compare", first, second]) == 0
    output = capsys.readouterr().out
    assert "order of collectives per rank and group" in output
    assert " 0.0 %" in output
    assert (tmp_path / "b" / "compare.html").exists()


def test_runs_of_other_jobs_compare_with_status_1(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """One JSON object with the verdict; the status is that of a gate that doesn't hold."""
    first = recorded(tmp_path / "a", moe_run())
    second = recorded(tmp_path / "b", moe_run(iterations=2))
    page = tmp_path / "page.html"
    assert main(["compare", first, second, "--json", "--html", str(page)]) == 1
    answer = json.loads(capsys.readouterr().out)
    assert not answer["agrees"]
    assert answer["page"] == str(page)
    assert not answer["checks"][0]["holds"]


def test_what_is_no_run_is_wrong_input(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Status 2, one line with the file and what would be right."""
    first = recorded(tmp_path / "a", moe_run())
    for command in (["compare", first, str(tmp_path)], ["report", str(tmp_path)]):
        assert main(command) == 2
        (line,) = capsys.readouterr().err.splitlines()
        assert f"{tmp_path}/run.json: there is no such file; give a directory" in line


def test_an_unwritable_page_is_wrong_input(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """The message names the file."""
    first, second = (recorded(tmp_path / name, moe_run()) for name in "ab")
    page = str(tmp_path / "nowhere" / "page.html")
    assert main(["compare", first, second, "--html", page]) == 2
    assert f"{page}: can't be written" in capsys.readouterr().err


def test_report_prints_where_the_page_is(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """The path of the page, alone on stdout."""
    directory = recorded(tmp_path / "a", moe_run())
    assert main(["report", directory]) == 0
    assert capsys.readouterr().out == f"{directory}/report.html\n"
    assert (tmp_path / "a" / "report.html").stat().st_size > 1_000_000


def test_a_report_that_cannot_be_written_fails(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """A directory stands where the page should go: status 1, no traceback."""
    directory = recorded(tmp_path / "a", moe_run())
    (tmp_path / "a" / "report.html").mkdir()
    assert main(["report", directory]) == 1
    assert "can't be written" in capsys.readouterr().err

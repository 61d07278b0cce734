"""`rankwire trace`, as a user calls it."""

import json

import pytest

from emulator.cli import main


@pytest.fixture
def traces(tmp_path, capsys):
    """Traces of the demo job for four ranks."""
    assert main(["trace", "generate", "moe-training", str(tmp_path), "--ranks", "4"]) == 0
    capsys.readouterr()
    return tmp_path


def output(capsys, *arguments):
    """What a command prints to stdout, as JSON."""
    assert main(["trace", *map(str, arguments), "--json"]) == 0
    return json.loads(capsys.readouterr().out)


def test_info_tells_nodes_and_communication_of_every_rank(traces, capsys):
    """One entry for each rank."""
    ranks = output(capsys, "info", traces)["ranks"]
    assert list(ranks) == ["0", "1", "2", "3"]
    assert ranks["0"]["dialect"] == "v0.0.4"
    assert {item["kind"] for item in ranks["0"]["communication"]} == {"all_reduce", "all_to_all"}


def test_validate_tells_the_bound_job(traces, capsys):
    """Groups, communications and counts."""
    job = output(capsys, "validate", traces)
    assert job["ranks"] == 4
    assert job["groups"]["data"] == [0, 1, 2, 3]


def test_show_filters_nodes(traces, capsys):
    """By type and by name."""
    shown = output(capsys, "show", traces, "--type", "COMM_COLL", "--limit", "1")
    assert shown["nodes"][0]["type"] == "COMM_COLL"
    assert shown["matching"] > 1
    assert output(capsys, "show", traces, "--name", "nothing*")["nodes"] == []


def test_one_file_can_be_looked_at(traces, capsys):
    """Without the other ranks, and under any name."""
    file = traces / "moe-training.2.et"
    assert list(output(capsys, "info", file)["ranks"]) == ["2"]
    assert output(capsys, "show", file.rename(traces / "any-name"))["rank"] == 0


def test_tables_are_printed_for_people(traces, capsys):
    """Without `--json`."""
    for action in ("info", "validate", "show"):
        assert main(["trace", action, str(traces)]) == 0
    assert "the job can run" in capsys.readouterr().out


def test_convert_writes_the_same_job(traces, tmp_path, capsys):
    """And overwrites nothing."""
    target = tmp_path / "converted"
    assert main(["trace", "convert", str(traces), str(target), "--gzip"]) == 0
    capsys.readouterr()
    before, after = (output(capsys, "validate", path) for path in (traces, target))
    assert after | {"traces": before["traces"]} == before
    assert main(["trace", "convert", str(traces), str(target), "--gzip"]) == 2


def test_wrong_input_is_one_line_and_status_2(traces, capsys):
    """Problem, place and remedy on stderr, nothing on stdout."""
    (traces / "moe-training.2.et").unlink()
    assert main(["trace", "validate", str(traces)]) == 2
    captured = capsys.readouterr()
    assert captured.out == ""
    assert captured.err.startswith(f"rankwire: {traces}: rank 2 of 0..3 has no file")
    assert main(["trace", "show", str(traces / "moe-training.0.et"), "--rank", "9"]) == 2
    assert main(["trace", "generate", "moe-training", str(traces), "--parameter", "x=1"]) == 2

"""The command: exit status 2 and one line per problem for wrong input, never a traceback."""

import json
import subprocess
import sys
from pathlib import Path

import pytest

from emulator.cli import build_parser, main


def test_every_command_explains_itself_with_an_example(capsys: pytest.CaptureFixture[str]) -> None:
    build_parser()
    for command in ("run", "predict", "lab", "sweep", "doctor"):
        with pytest.raises(SystemExit) as ended:
            main([command, "--help"])
        assert ended.value.code == 0
        assert f"rankwire {command} " in capsys.readouterr().out


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["lab", "show", "nowhere"], "there is no lab of this name"),
        (["lab", "check", "loopback-clos", "--set", "ecn.kmin_bytes=9000000"], "above kmax_bytes"),
        (["doctor", "none.yaml"], "there is no such file"),
        (["predict", "loopback-clos", "--profile", "none"], "there is no profile"),
        (["predict", "loopback-clos", "--trace", "/nowhere"], "/nowhere"),
        (["run", "loopback-clos", "--time-dilation", "9999999"], "time_dilation"),
        (["sweep", "none.yaml"], "can't be read"),
    ],
)
def test_wrong_input_is_exit_status_2_with_a_message(
    arguments: list[str], said: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(arguments) == 2
    told = capsys.readouterr()
    assert said in told.err
    assert told.out == ""
    assert all(line.startswith("rankwire: ") for line in told.err.splitlines())


@pytest.mark.parametrize(
    "arguments",
    [
        ["predict", "loopback-clos", "--iterations", "0"],
        ["predict", "loopback-clos", "--size-scale", "nan"],
        ["predict", "loopback-clos", "--seed", "-1"],
        ["predict", "loopback-clos", "--trace", "a", "--profile", "b"],
        ["nonsense"],
        [],
    ],
)
def test_wrong_arguments_are_exit_status_2(arguments: list[str]) -> None:
    with pytest.raises(SystemExit) as ended:
        main(arguments)
    assert ended.value.code == 2


def test_labs_are_listed_and_shown_as_json(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["lab", "list", "--json"]) == 0
    assert "loopback-clos" in json.loads(capsys.readouterr().out)
    assert main(["lab", "show", "loopback-clos", "--json"]) == 0
    shown = json.loads(capsys.readouterr().out)
    assert shown["resolved"]["congestion_control"]["min_rate_bps"] == [200_000_000, "lab file"]
    assert len(shown["config"]["nics"]) == 8


def test_the_schema_of_labs_is_json_schema(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["lab", "schema"]) == 0
    schema = json.loads(capsys.readouterr().out)
    assert schema["properties"]["topology"]["discriminator"]["propertyName"] == "kind"
    reaction = schema["$defs"]["Dcqcn"]["properties"]
    assert "rpg_ai_rate" in reaction
    assert "additive_increase_bps" in reaction


def test_a_closed_pipe_is_no_traceback() -> None:
    root = Path(__file__).parents[2]
    command = f"{sys.executable} -m emulator lab keys | head -n 1"
    ended = subprocess.run(  # noqa: S602
        command, shell=True, cwd=root, capture_output=True, text=True, timeout=60, check=False
    )
    assert "Traceback" not in ended.stderr


def test_ctrl_c_while_the_command_is_being_loaded_is_no_traceback(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def interrupted(_only: str | None) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr("emulator.cli.build_parser", interrupted)
    assert main(["predict", "loopback-clos"]) == 130
    assert "interrupted" in capsys.readouterr().err

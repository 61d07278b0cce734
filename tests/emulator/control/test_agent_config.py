"""The agent's file: strict, safe by default, and silent about its password."""

from pathlib import Path

import pytest

from dataplane.errors import InputError
from emulator.control.agent_config import AgentConfig, read_agent_config

BROKER = "mqtt://user:very-secret@127.0.0.1:1883"


def written(directory: Path, text: str) -> Path:
    """Return a file with some text."""
    path = directory / "agent.yaml"
    path.write_text(text)
    return path


def test_an_agent_reaches_only_loopback_by_default(tmp_path: Path) -> None:
    """Nobody is hit by accident."""
    config = read_agent_config(written(tmp_path, f"name: a\nbroker: {BROKER}\n"))
    assert config.allows("127.0.0.1")
    assert not config.allows("198.18.0.1")
    assert not config.allows("localhost")
    assert not config.allows("::1")


def test_reach_beyond_loopback_needs_a_rate_cap(tmp_path: Path) -> None:
    """A traffic generator on a real network states how much it may send."""
    text = f"name: a\nbroker: {BROKER}\nallowed_prefixes: [198.18.0.0/15, 127.0.0.0/8]\n"
    with pytest.raises(InputError, match="rate_cap_bps"):
        read_agent_config(written(tmp_path, text))
    config = read_agent_config(written(tmp_path, text + "rate_cap_bps: 1000\n"))
    assert config.allows("198.19.255.255")


@pytest.mark.parametrize(
    ("prefix", "inside"),
    [
        ("0.0.0.0/0", "8.8.8.8"),
        ("8.8.8.8/32", "8.8.8.8"),
        ("198.0.0.0/8", "198.20.0.1"),
        ("::/0", "::2"),
    ],
)
def test_public_addresses_have_to_be_meant(tmp_path: Path, prefix: str, inside: str) -> None:
    """A prefix alone may be a slip; no message can say it instead."""
    text = f"name: a\nbroker: {BROKER}\nallowed_prefixes: [127.0.0.0/8, '{prefix}']\n"
    capped = text + "rate_cap_bps: 1000\n"
    with pytest.raises(InputError, match="needs allow_public: true"):
        read_agent_config(written(tmp_path, capped))
    assert read_agent_config(written(tmp_path, capped + "allow_public: true\n")).allows(inside)


@pytest.mark.parametrize("key", ["bind_address", "controller_address"])
def test_own_addresses_are_inside_the_prefixes(tmp_path: Path, key: str) -> None:
    """The file that forbids an address does not use it either."""
    text = f"name: a\nbroker: {BROKER}\n{key}: 10.0.2.2\n"
    with pytest.raises(InputError, match=f"{key} 10.0.2.2 is outside of allowed_prefixes"):
        read_agent_config(written(tmp_path, text))


def test_every_problem_is_named_with_its_key(tmp_path: Path) -> None:
    """Unknown keys and wrong values are reported together."""
    text = f"name: a/b\nbroker: {BROKER}\ncolour: red\nallowed_prefixes: [nonsense]\n"
    with pytest.raises(InputError) as caught:
        read_agent_config(written(tmp_path, text))
    places = {problem.place.split(".")[0] for problem in caught.value.problems}
    assert places >= {"name", "colour", "allowed_prefixes"}


@pytest.mark.parametrize(
    "text", ["name: a\nbroker: [very-secret]\n", "broker: very-secret\n: :", "very-secret"]
)
def test_a_bad_file_does_not_show_its_password(tmp_path: Path, text: str) -> None:
    """Messages go to logs."""
    with pytest.raises(InputError) as caught:
        read_agent_config(written(tmp_path, text))
    assert "very-secret" not in str(caught.value)


@pytest.mark.parametrize(
    ("mode", "broker", "warned"),
    [
        (0o644, BROKER, True),
        (0o640, BROKER, True),
        (0o600, BROKER, False),
        (0o644, "mqtt://user@127.0.0.1:1883", False),
    ],
)
def test_a_password_that_others_can_read_is_told(
    tmp_path: Path, mode: int, broker: str, warned: bool, caplog: pytest.LogCaptureFixture
) -> None:
    """Without showing it."""
    path = written(tmp_path, f"name: a\nbroker: {broker}\n")
    path.chmod(mode)
    read_agent_config(path)
    assert ("others can read it" in caplog.text) is warned
    assert "very-secret" not in caplog.text


def test_the_password_is_not_shown() -> None:
    """Neither by repr nor by str."""
    config = AgentConfig(name="a", broker=BROKER)
    assert "very-secret" not in f"{config!r} {config}"


def test_a_missing_file_is_an_input_error(tmp_path: Path) -> None:
    """With the file's name."""
    with pytest.raises(InputError, match=r"absent\.yaml"):
        read_agent_config(tmp_path / "absent.yaml")

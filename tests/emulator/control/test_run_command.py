"""`rankwire run` as a process, and what becomes of its agents when it dies."""

import os
import signal
import socket
import time
from pathlib import Path

import pytest

from tests.emulator.control.processes import command, is_alive, is_running, until, until_agents

PROMISED_S = 2.0
SLOW = ("run", "loopback-clos", "--set", "agents.count=2", "--time-dilation", "20000")
LAB_AGENTS = 2
FAREWELL_S = 15.0


def test_agents_of_a_killed_controller_are_gone_within_the_promised_time(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """No traffic without a controller, and no file with a password."""
    temporary = tmp_path / "temporary"
    temporary.mkdir()
    monkeypatch.setenv("TMPDIR", str(temporary))
    with command(*SLOW, directory=tmp_path) as controller:
        agents = until_agents(controller, LAB_AGENTS)
        controller.send_signal(signal.SIGKILL)
        since = time.monotonic()
        until(lambda: not any(map(is_alive, agents.values())))
        assert time.monotonic() - since < PROMISED_S
    assert list(temporary.iterdir()) == []


def test_agents_of_a_frozen_controller_stop_within_the_promised_time(tmp_path: Path) -> None:
    """Its connection stands, but no heartbeat comes."""
    with command(*SLOW, directory=tmp_path) as controller:
        agents = until_agents(controller, LAB_AGENTS)
        controller.send_signal(signal.SIGSTOP)
        since = time.monotonic()
        until(lambda: not any(map(is_running, agents.values())))
        assert time.monotonic() - since < PROMISED_S
        # After the traffic has stopped they try to give their records to a controller that does
        # not take them.
        until(lambda: not any(map(is_alive, agents.values())))
        assert time.monotonic() - since < PROMISED_S + FAREWELL_S


def test_ctrl_c_ends_a_run_in_order(tmp_path: Path) -> None:
    """Agents are gone, records are kept, one line says so."""
    out = tmp_path / "records"
    with command(*SLOW, "--out", str(out), directory=tmp_path) as controller:
        agents = until_agents(controller, LAB_AGENTS)
        controller.send_signal(signal.SIGINT)
        _, stderr = controller.communicate(timeout=30)
        assert not any(map(is_alive, agents.values()))
    assert controller.returncode == 130
    assert "interrupted by the user" in stderr
    assert "Traceback" not in stderr
    assert (out / "run.json").exists()


def test_a_killed_agent_fails_the_command(tmp_path: Path) -> None:
    """Exit status 1, one line that names the agent, records kept."""
    out = tmp_path / "records"
    with command(*SLOW, "--out", str(out), directory=tmp_path) as controller:
        agents = until_agents(controller, LAB_AGENTS)
        os.kill(agents["agent-1"], signal.SIGKILL)
        _, stderr = controller.communicate(timeout=30)
    assert controller.returncode == 1
    assert "agent agent-1 (host" in stderr
    assert "Traceback" not in stderr
    assert (out / "run.json").exists()


@pytest.mark.parametrize("login", ["", "user:very-secret@"])
def test_an_unreachable_broker_is_one_line_and_exit_status_2(tmp_path: Path, login: str) -> None:
    """Nothing is started, and no password is shown."""
    with socket.create_server(("127.0.0.1", 0)) as probe:
        port = probe.getsockname()[1]
    url = f"control.broker=mqtt://{login}127.0.0.1:{port}"
    with command("run", "loopback-clos", "--set", url, directory=tmp_path) as controller:
        _, stderr = controller.communicate(timeout=30)
    assert controller.returncode == 2
    assert f"mqtt://127.0.0.1:{port}: no MQTT broker answers" in stderr
    assert "Traceback" not in stderr
    assert "very-secret" not in stderr

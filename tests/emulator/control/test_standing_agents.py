"""Agents that run already, as on the hosts of a lab: one broker, several runs."""

import contextlib
from pathlib import Path

from emulator.control.merge import NOT_DONE
from emulator.controller import run
from emulator.job import JobRequest, build_job
from tests.emulator.control.processes import command, mosquitto

NAMES = ("agent-0", "agent-1")


def test_standing_agents_serve_one_run_after_another(tmp_path: Path) -> None:
    """They are asked by name, give their records, and wait for the next run."""
    with contextlib.ExitStack() as stack:
        url, _ = stack.enter_context(mosquitto(tmp_path))
        agents = []
        for name in NAMES:
            config = tmp_path / f"{name}.yaml"
            config.write_text(f"name: {name}\nbroker: {url}\n")
            words = ("agent", "--config", str(config))
            agents.append(stack.enter_context(command(*words, directory=tmp_path)))
        overrides = (
            "agents.spawn=false",
            "agents.count=2",
            "time_dilation=2000",
            f"control.broker={url}",
        )
        job = build_job(JobRequest(lab="loopback-clos", size_scale=0.01, overrides=overrides))
        for _ in range(2):
            records = run(job)
            assert (records["ops"]["end_ps"] != NOT_DONE).all()
            assert [agent.poll() for agent in agents] == [None, None]

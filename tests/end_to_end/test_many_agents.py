"""As many agents as ranks, all on one machine and one broker."""

import asyncio
import contextlib
import multiprocessing
from collections.abc import Iterator
from pathlib import Path

import pytest

from emulator.control.agent import serve
from emulator.control.agent_config import read_agent_config
from emulator.control.merge import NOT_DONE
from emulator.controller import ControlReport, run
from emulator.job import JobRequest, build_job
from tests.emulator.control.processes import mosquitto

AGENTS = 64


def be_agent(config: Path) -> None:
    """What `rankwire agent` does, in a process that need not import it anew."""
    asyncio.run(serve(read_agent_config(config)))


@contextlib.contextmanager
def agents(directory: Path, url: str) -> Iterator[list[multiprocessing.process.BaseProcess]]:
    """Run standing agents, a process each."""
    context = multiprocessing.get_context("forkserver")
    context.set_forkserver_preload([__name__, "emulator.control.agent"])
    processes: list[multiprocessing.process.BaseProcess] = []
    try:
        for index in range(AGENTS):
            config = directory / f"agent-{index}.yaml"
            config.write_text(f"name: agent-{index}\nbroker: {url}\n")
            processes.append(context.Process(target=be_agent, args=(config,), daemon=True))
            processes[-1].start()
        yield processes
    finally:
        for process in processes:
            process.terminate()
        for process in processes:
            process.join()


@pytest.mark.slow
def test_sixty_four_agents_run_a_job_of_sixty_four_ranks(tmp_path: Path) -> None:
    """Each carries one NIC, twelve of them a switch as well; every clock is compared."""
    overrides = (
        "agents.spawn=false",
        f"agents.count={AGENTS}",
        "time_dilation=100000",
    )
    reports: list[ControlReport] = []
    with mosquitto(tmp_path) as (url, _), agents(tmp_path, url) as processes:
        broker = f"control.broker={url}"
        request = JobRequest(
            "clos-64", (*overrides, broker), profile="all-reduce", size_scale=0.001
        )
        records = run(build_job(request), on_report=reports.append, join_timeout_s=60)
        assert all(process.is_alive() for process in processes)
    assert (records["ops"]["end_ps"] != NOT_DONE).all()
    assert len(set(records["ops"]["rank"].tolist())) == AGENTS
    (report,) = reports
    assert all(agent.has_records and agent.clock for agent in report.agents)
    assert sum(agent.dropped_messages for agent in report.agents) == 0

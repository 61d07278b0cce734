"""Runs a job for real: agents, wall clock, packets on wires. The thin public face of `control`."""

import asyncio
import contextlib
import datetime
import secrets
import signal
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from emulator.control.assignment import Topology, wire_ends
from emulator.control.controller import Controller, OnMetrics, OnProgress
from emulator.control.outcome import (
    ControlReport,
    EngineRecords,
    Progress,
    RunFailed,
    RunInterrupted,
)
from emulator.control.run_plan import DEFAULT_JOIN_TIMEOUT_S, RunPlan, spread
from emulator.control.stall import DEFAULT_STALL_TIMEOUT_S
from emulator.control.transport import BrokerAddress
from emulator.job import Job
from emulator.lab.events import longest_wait_ps
from emulator.lab.model import Control
from emulator.link_events import check_events
from emulator.ports import agent_limits, port_descriptions

__all__ = [
    "ControlReport",
    "EngineRecords",
    "Progress",
    "RunFailed",
    "RunInterrupted",
    "run",
]

_EMBEDDED = "embedded"


def run(
    job: Job,
    *,
    on_progress: OnProgress | None = None,
    on_metrics: OnMetrics | None = None,
    on_report: Callable[[ControlReport], None] | None = None,
    join_timeout_s: float = DEFAULT_JOIN_TIMEOUT_S,
    stall_timeout_s: float = DEFAULT_STALL_TIMEOUT_S,
) -> EngineRecords:
    """Run a job on agents and return its records, the same tables as `predict`.

    `on_progress` and `on_metrics` are called about twice a second, never two at a time, from a
    thread of their own: metrics with the merged snapshot of all agents and with the operations
    that completed since the last call. `on_report` is called once, at the end, also of a failed
    run that had begun, with facts about agents, clocks and messages for `run.json`.

    Ctrl-C or SIGTERM ends the run in order; a second Ctrl-C ends it at once. Raises `InputError`
    when the run could not begin (broker unreachable, port taken, nodes carried twice), `RunFailed`
    when it ended early and `RunInterrupted` when the user ended it: both hold the records so far
    in `records`. No agent that was spawned is left behind.
    """
    plan = plan_run(job, join_timeout_s=join_timeout_s, stall_timeout_s=stall_timeout_s)
    try:
        records, report = asyncio.run(_drive(plan, on_progress, on_metrics))
    except RunFailed as failure:
        if failure.report is not None and on_report is not None:
            on_report(failure.report)
        raise
    if on_report is not None:
        on_report(report)
    return records


def plan_run(job: Job, *, join_timeout_s: float, stall_timeout_s: float) -> RunPlan:
    """Return what the controller needs of a job; raises `InputError`."""
    lab = job.lab
    ports = port_descriptions(job.loaded)
    count = lab.agents.count
    agents = lab.agents.placement or spread(job.config_json, count, with_switches=ports is None)
    check_events(job.loaded, is_real=ports is not None)
    return RunPlan(
        run_id=new_run_id(),
        config_json=job.config_json,
        programs=job.programs,
        time_dilation=lab.time_dilation,
        agents=agents,
        broker=_broker(lab.control),
        spawns_agents=lab.agents.spawn,
        ports=ports,
        agent_silence_limit_s=lab.control.agent_silence_limit_s,
        event_notice_ps=lab.control.event_notice_ms * 10**9 // lab.time_dilation,
        agent_limits=_agent_limits(job, ports, agents),
        http_address=lab.control.http_address,
        join_timeout_s=join_timeout_s,
        stall_timeout_s=stall_timeout_s + longest_silence_s(job),
    )


def _broker(control: Control) -> BrokerAddress | None:
    """Return the broker that the lab names; None for the embedded one."""
    if control.broker == _EMBEDDED:
        return None
    return BrokerAddress.parse(
        control.broker,
        source="control.broker",
        mqtt_version=control.mqtt_version,
        password_file=None if control.password_file is None else Path(control.password_file),
    )


def _agent_limits(
    job: Job, ports: dict[str, dict[str, Any]] | None, agents: Mapping[str, Sequence[str]]
) -> dict[str, dict[str, Any]]:
    """What agents that are spawned may do beyond loopback: as much as their NICs do."""
    if ports is None or not job.lab.agents.spawn:
        return {}
    topology = Topology(job.config)
    limits = {}
    for name, nics in agents.items():
        rate_bps = sum(wire_ends(topology, set(nics)).values()) // job.lab.time_dilation
        limits[name] = agent_limits(ports, set(nics), rate_bps)
    return limits


def longest_silence_s(job: Job) -> float:
    """Return how long nothing may move in a run that goes well, in wall seconds.

    The longest single delay of a program, a queue pair that retries until it fails, and links that
    are down.
    """
    transport = job.config["transport"]
    retries_ps = transport["retransmission_timeout_ps"] * (transport["retry_count"] + 1)
    delay_ps = max((int(p.duration_ps.max()) for p in job.programs if len(p)), default=0)
    events_ps = longest_wait_ps(job.config["events"])
    return float((retries_ps + delay_ps + events_ps) * 1e-12 * job.lab.time_dilation)


def new_run_id() -> str:
    """Return an id that is unique on a broker and sorts by time."""
    now = datetime.datetime.now(datetime.UTC)
    return f"{now:%Y%m%dT%H%M%SZ}-{secrets.token_hex(3)}"


async def _drive(
    plan: RunPlan, on_progress: OnProgress | None, on_metrics: OnMetrics | None
) -> tuple[EngineRecords, ControlReport]:
    controller = Controller(plan, on_progress=on_progress, on_metrics=on_metrics)
    with _interruptible(controller):
        return await controller.drive()


@contextlib.contextmanager
def _interruptible(controller: Controller) -> Iterator[None]:
    """Turn signals into an orderly end; without effect outside of the main thread."""
    loop = asyncio.get_running_loop()
    task = asyncio.current_task()
    presses = 0

    def interrupt() -> None:
        nonlocal presses
        presses += 1
        if presses > 1 and task is not None:
            task.cancel()
        controller.interrupt()

    numbers = (signal.SIGINT, signal.SIGTERM)
    with contextlib.suppress(ValueError, RuntimeError):
        for number in numbers:
            loop.add_signal_handler(number, interrupt)
    try:
        yield
    finally:
        for number in numbers:
            with contextlib.suppress(ValueError, RuntimeError):
                loop.remove_signal_handler(number)

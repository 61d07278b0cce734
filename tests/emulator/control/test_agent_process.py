"""A real agent process on a real broker, with a controller that does what the test tells it."""

import asyncio
import socket
import subprocess
import sys
import time
from collections.abc import Awaitable, Callable
from pathlib import Path

import pytest

from emulator.control import topics
from emulator.control.blobs import serve_blobs
from emulator.control.messages import ControllerHeartbeat, DesiredState, Phase, State, encode
from tests.emulator.control.puppet import AGENT, LoneAgent, Puppet, lone_agent, puppet, until

PROMISED_S = 2.0
EXIT_S = 1.0
"""What the interpreter may take to end on a loaded machine."""
Scenario = Callable[[LoneAgent, Puppet], Awaitable[None]]


def drive(directory: Path, scenario: Scenario, **keys: object) -> None:
    """Run a scenario with one agent."""

    async def run() -> None:
        async with lone_agent(directory, **keys) as agent, puppet(agent.broker) as hand:
            await scenario(agent, hand)

    asyncio.run(run())


async def join(hand: Puppet) -> None:
    """Bring the agent into the run."""
    hand.is_beating = True
    await hand.ask(Phase.JOIN)
    await hand.reach(State.JOINED)


def test_a_desired_state_without_heartbeats_moves_nothing(tmp_path: Path) -> None:
    """What a dead controller left on the broker is not followed."""

    async def scenario(agent: LoneAgent, hand: Puppet) -> None:
        async with puppet(agent.broker, "run-2") as living:
            await hand.ask(Phase.JOIN)
            await join(living)
            assert hand.actual is None

    drive(tmp_path, scenario)


def test_an_agent_ends_within_the_promised_time_of_silence(tmp_path: Path) -> None:
    """A spawned agent does not outlive its controller; `test_run_command` looks at its traffic."""

    async def scenario(agent: LoneAgent, hand: Puppet) -> None:
        await join(hand)
        hand.is_beating = False
        since = time.monotonic()
        await until(lambda: bool(agent.ended()))
        assert time.monotonic() - since < PROMISED_S + EXIT_S

    drive(tmp_path, scenario, run="run-1", exit_with_controller=True)


def test_a_standing_agent_serves_the_next_run_after_a_lost_controller(tmp_path: Path) -> None:
    """It forgets the run and waits."""

    async def scenario(agent: LoneAgent, hand: Puppet) -> None:
        await join(hand)
        hand.is_beating = False
        async with puppet(agent.broker, "run-2") as following:
            following.is_beating = True
            await asyncio.sleep(PROMISED_S)
            await join(following)
        assert not agent.ended()

    drive(tmp_path, scenario)


def test_an_agent_outlives_a_farewell_that_overtakes_its_last_report(tmp_path: Path) -> None:
    """The release is followed by the end of the heartbeats at once."""

    async def scenario(agent: LoneAgent, _: Puppet) -> None:
        for number in range(4):
            async with puppet(agent.broker, f"run-{number}") as hand:
                await join(hand)
                hand.is_beating = False
                gone = ControllerHeartbeat(sequence=2, sent_realtime_ns=time.time_ns(), gone=True)
                farewell = topics.controller_heartbeat(hand.run)
                release = hand.ask(Phase.RELEASE)
                await asyncio.gather(release, hand.say(farewell, encode(gone)))
        async with puppet(agent.broker, "run-last") as hand:
            await join(hand)
        assert not agent.ended()

    drive(tmp_path, scenario)


def test_an_agent_serves_one_run_at_a_time(tmp_path: Path) -> None:
    """A second controller is told so."""

    async def scenario(agent: LoneAgent, hand: Puppet) -> None:
        await join(hand)
        async with puppet(agent.broker, "run-2") as second:
            second.is_beating = True
            await second.ask(Phase.JOIN)
            refusal = await second.reach(State.FAILED)
            assert refusal.reason == "the agent serves the run run-1"
        assert hand.actual is not None
        assert hand.actual.state is State.JOINED

    drive(tmp_path, scenario)


@pytest.mark.parametrize(
    "payload",
    [
        b"\x00\xff",
        b"[]",
        b'{"revision":1,"phase":"start","shell":"rm -rf /"}',
        b'{"revision":1e400,"phase":"join"}',
        b"{" * 100_000,
        b"x" * (2 << 20),
    ],
)
def test_a_hostile_message_is_counted_and_dropped(tmp_path: Path, payload: bytes) -> None:
    """The agent goes on as if nothing had come."""

    async def scenario(_: LoneAgent, hand: Puppet) -> None:
        await join(hand)
        await hand.say(topics.desired(hand.run, AGENT), payload)
        await hand.say(topics.controller_heartbeat(hand.run), payload)
        await until(lambda: hand.heartbeat is not None and hand.heartbeat.dropped_messages == 2)
        assert hand.actual is not None
        assert hand.actual.state is State.JOINED

    drive(tmp_path, scenario)


def test_runs_that_nobody_leads_any_more_do_not_keep_an_agent_from_new_ones(
    tmp_path: Path,
) -> None:
    """What dead controllers have left on a broker is without end."""

    async def scenario(_: LoneAgent, hand: Puppet) -> None:
        desired = encode(DesiredState(revision=1, phase=Phase.JOIN))
        for number in range(100):
            await hand.say(topics.desired(f"dead-{number}", AGENT), desired, retain=True)
        await join(hand)

    drive(tmp_path, scenario)


def test_a_flood_is_dropped_and_the_agent_goes_on(tmp_path: Path) -> None:
    """More messages in a second than an agent looks at, of a run that is not its own."""

    async def scenario(_: LoneAgent, hand: Puppet) -> None:
        await join(hand)
        beat = encode(ControllerHeartbeat(sequence=1, sent_realtime_ns=1))
        for number in range(4000):
            topic = topics.controller_heartbeat(f"flood-{number}")
            await hand.transport.publish(topic, beat, qos=0)
        await asyncio.sleep(1.5)  # until it looks at messages again
        await hand.ask(Phase.RELEASE)
        await hand.reach(State.IDLE)
        async with puppet(_.broker, "run-2") as following:
            await join(following)

    drive(tmp_path, scenario)


def test_a_job_with_a_wrong_digest_is_refused(tmp_path: Path) -> None:
    """The agent says why."""

    async def scenario(_: LoneAgent, hand: Puppet) -> None:
        async with serve_blobs(lambda *_: None) as server:
            job = server.offer(b"job").model_copy(update={"sha256": "0" * 64, "size_bytes": 3})
            server._blobs[job.sha256] = b"bad"
            await join(hand)
            await hand.ask(Phase.PREPARE, job=job.model_dump(), token=server.token)
            failed = await hand.reach(State.FAILED)
            assert "digest" in failed.reason

    drive(tmp_path, scenario)


def test_a_job_that_is_garbage_is_refused(tmp_path: Path) -> None:
    """The right digest of the wrong bytes."""

    async def scenario(_: LoneAgent, hand: Puppet) -> None:
        async with serve_blobs(lambda *_: None) as server:
            await join(hand)
            job = server.offer(b"garbage").model_dump()
            await hand.ask(Phase.PREPARE, job=job, token=server.token)
            failed = await hand.reach(State.FAILED)
            assert "columns" in failed.reason

    drive(tmp_path, scenario)


def test_an_agent_does_not_fetch_from_outside_of_its_prefixes(tmp_path: Path) -> None:
    """A message cannot make it talk to other hosts."""

    async def scenario(_: LoneAgent, hand: Puppet) -> None:
        job = {"url": "http://192.0.2.1/blobs/x", "sha256": "0" * 64, "size_bytes": 3}
        await join(hand)
        await hand.ask(Phase.PREPARE, job=job)
        failed = await hand.reach(State.FAILED)
        assert "allowed prefixes" in failed.reason

    drive(tmp_path, scenario)


def test_a_released_agent_ends_in_order(tmp_path: Path) -> None:
    """Exit status 0."""

    async def scenario(agent: LoneAgent, hand: Puppet) -> None:
        await join(hand)
        await hand.ask(Phase.RELEASE)
        await until(lambda: bool(agent.ended()))
        assert "with status 0" in agent.ended()

    drive(tmp_path, scenario, run="run-1", exit_with_controller=True)


def test_an_unreachable_broker_is_one_line_and_exit_status_2(tmp_path: Path) -> None:
    """Not a traceback, and not the password."""
    with socket.create_server(("127.0.0.1", 0)) as probe:
        port = probe.getsockname()[1]
    config = tmp_path / "agent.yaml"
    config.write_text(f"name: a\nbroker: mqtt://u:very-secret@127.0.0.1:{port}\n")
    config.chmod(0o600)
    result = subprocess.run(
        [sys.executable, "-m", "emulator", "agent", "--config", config],
        capture_output=True,
        text=True,
        check=False,
        timeout=30,
    )
    assert result.returncode == 2
    assert len(result.stderr.splitlines()) == 1
    assert f"mqtt://127.0.0.1:{port}: no MQTT broker answers" in result.stderr
    assert "very-secret" not in result.stderr


def test_an_agent_loads_nothing_that_only_controllers_need() -> None:
    """It starts within seconds on a slow host, and is small on every one."""
    code = "import sys, emulator.cli, emulator.control.agent; print(*sys.modules)"
    ran = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    heavy = {"amqtt", "metrics", "plotly", "polars", "prometheus_client", "pyroute2", "rich"}
    assert heavy.isdisjoint(ran.stdout.split())

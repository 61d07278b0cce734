"""What the controller makes of messages; time is an argument."""

import numpy as np
import pytest

from dataplane import __version__
from emulator.control import columns, topics
from emulator.control.messages import (
    ActualState,
    AgentHeartbeat,
    BaseMessage,
    Presence,
    State,
    encode,
)
from emulator.control.roster import AGENT_SILENCE_LIMIT_S, Roster
from emulator.control.transport import Received
from emulator.controller import plan_run
from emulator.job import JobRequest, build_job

ME, OTHER = "1" * 64, "2" * 64


class Wire:
    """A roster with one agent and a way to send to it."""

    def __init__(self, silence_limit_s: float = AGENT_SILENCE_LIMIT_S) -> None:
        self.roster = Roster("r", {"a": ["h0", "l0"]}, silence_limit_s)
        self.agent = self.roster.agents["a"]

    def send(self, topic: str, message: BaseMessage | bytes, now_s: float = 0.0) -> None:
        """Deliver a message at some time."""
        payload = message if isinstance(message, bytes) else encode(message)
        self.roster.handle(Received(topic, payload, False), now_s, 0)

    def join(
        self, incarnation: str = ME, state: State = State.JOINED, version: str = __version__
    ) -> None:
        """Let the agent report a state."""
        actual = ActualState(
            incarnation=incarnation, revision=1, state=state, version=version, reason="why"
        )
        self.send(topics.actual("r", "a"), actual)


@pytest.fixture
def wire() -> Wire:
    return Wire()


def beat(incarnation: str = ME) -> AgentHeartbeat:
    """Return an answer to a heartbeat."""
    return AgentHeartbeat(
        incarnation=incarnation,
        sequence=1,
        controller_sent_realtime_ns=1,
        received_realtime_ns=2,
        sent_realtime_ns=3,
    )


def progress(**totals: object) -> bytes:
    """Return a progress report with the totals that matter."""
    snapshot = {"ops_done": 1, "ops_total": 2, "bytes_delivered": 3, "now_ps": 4} | totals
    completed = {name: np.zeros(0, np.uint64) for name in ("rank", "op", "start_ps", "end_ps")}
    return columns.encode({"incarnation": ME, "snapshot": snapshot, "completed": completed})


def test_an_agent_that_answers_has_no_fault(wire: Wire) -> None:
    """Silence counts from the last answer."""
    wire.join()
    wire.send(topics.agent_heartbeat("r", "a"), beat(), now_s=3.0)
    assert wire.roster.fault(3.0 + AGENT_SILENCE_LIMIT_S) is None


def test_a_silent_agent_is_a_fault_that_names_agent_and_nodes(wire: Wire) -> None:
    """The message says what is missing."""
    wire.join()
    fault = wire.roster.fault(AGENT_SILENCE_LIMIT_S + 0.1)
    assert fault is not None
    assert "agent a (h0, l0) has not answered" in fault


def test_a_lab_says_how_long_its_agents_may_be_silent() -> None:
    """From the lab file to the message."""
    job = build_job(JobRequest("loopback-clos", ("control.agent_silence_limit_s=60",)))
    limit_s = plan_run(job, join_timeout_s=1, stall_timeout_s=1).agent_silence_limit_s
    wire = Wire(limit_s)
    wire.join()
    assert wire.roster.fault(59.9) is None
    assert wire.agent.is_present(59.9)
    assert "has not answered for 60 s" in str(wire.roster.fault(60.1))
    assert not wire.agent.is_present(60.1)


def test_a_last_will_is_a_fault(wire: Wire) -> None:
    """The broker tells of a death at once."""
    wire.join()
    wire.send(topics.presence("a"), Presence(incarnation=ME, presence="lost"))
    assert "was lost" in str(wire.roster.fault(0.0))


def test_the_last_will_of_an_earlier_incarnation_is_not(wire: Wire) -> None:
    """A retained will of yesterday does not end today's run."""
    wire.send(topics.presence("a"), Presence(incarnation=OTHER, presence="lost"))
    wire.join()
    assert wire.roster.fault(0.0) is None


def test_a_restarted_agent_is_a_fault(wire: Wire) -> None:
    """Its wires and programs are gone."""
    wire.join()
    wire.join(incarnation=OTHER)
    assert "was lost" in str(wire.roster.fault(0.0))


def test_a_failed_agent_is_a_fault_with_its_reason(wire: Wire) -> None:
    """The agent's own words."""
    wire.join(state=State.FAILED)
    assert "failed: why" in str(wire.roster.fault(0.0))


@pytest.mark.parametrize(("version", "named"), [("0.0.9", "0.0.9"), ("", "unknown version")])
def test_an_agent_of_another_version_is_a_fault_as_soon_as_it_joins(
    wire: Wire, version: str, named: str
) -> None:
    """Both versions are named; older agents don't tell theirs."""
    wire.join(version=version)
    fault = str(wire.roster.fault(0.0))
    assert named in fault
    assert f"the controller has {__version__}" in fault


@pytest.mark.parametrize(
    ("topic", "payload"),
    [
        (topics.actual("r", "a"), b"{"),
        (topics.actual("r", "a"), b'{"state":"running"}'),
        (topics.actual("r", "stranger"), b"{}"),
        (topics.actual("other-run", "a"), b"{}"),
        (topics.progress("r", "a"), b"PK\x03\x04"),
        (topics.progress("r", "a"), progress(ops_done="many")),
        (topics.progress("r", "a"), columns.encode({"incarnation": ME, "snapshot": 1})),
        (topics.agent_heartbeat("r", "a"), encode(beat(OTHER))),
        ("rankwire/r/nonsense", b"{}"),
    ],
)
def test_a_malformed_message_is_counted_and_dropped(wire: Wire, topic: str, payload: bytes) -> None:
    """It changes nothing else."""
    wire.join()
    wire.send(topic, payload)
    assert wire.roster.dropped_messages == 1
    assert wire.roster.fault(0.0) is None
    assert wire.agent.snapshot is None


def test_progress_is_kept(wire: Wire) -> None:
    """The totals of the agent and its completed operations."""
    wire.join()
    wire.send(topics.progress("r", "a"), progress())
    assert wire.agent.snapshot is not None
    assert wire.agent.snapshot["bytes_delivered"] == 3
    assert len(wire.agent.completed) == 1

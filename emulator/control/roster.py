"""What the controller knows of its agents, from their messages; time is an argument.

Nothing here sends. Malformed messages and messages of unknown agents are counted and dropped.
"""

from collections import deque
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Final

from dataplane import __version__
from emulator.control import columns, topics
from emulator.control.clock import ClockEstimate, ClockSample, estimate
from emulator.control.messages import (
    MAX_MESSAGE_BYTES,
    ActualState,
    AgentHeartbeat,
    MalformedMessage,
    Presence,
    State,
    decode,
)
from emulator.control.transport import Received

__all__ = ["AGENT_SILENCE_LIMIT_S", "AgentStatus", "Roster"]

AGENT_SILENCE_LIMIT_S: Final = 5.0
"""Silence after which an agent counts as gone, unless the lab says otherwise. Longer than the other
way round: a wrong stop costs a whole run, and the last will tells of a death at once."""

_MAX_UNPACKED_BYTES: Final = 16 * MAX_MESSAGE_BYTES
_CLOCK_SAMPLES: Final = 64
_NAMED_NODES: Final = 12


@dataclass(slots=True)
class AgentStatus:
    """One agent as seen by the controller."""

    name: str
    nodes: Sequence[str]
    silence_limit_s: float = AGENT_SILENCE_LIMIT_S
    """Silence after which it counts as gone."""
    incarnation: str | None = None
    is_lost: bool = False
    actual: ActualState | None = None
    heard_s: float | None = None
    clock_samples: deque[ClockSample] = field(default_factory=lambda: deque(maxlen=_CLOCK_SAMPLES))
    clock_at_start: ClockEstimate | None = None
    """Its clock as it was when the start was chosen: later ones may have been set meanwhile."""
    snapshot: dict[str, Any] | None = None
    completed: list[dict[str, Any]] = field(default_factory=list)
    """Every report of completed operations; they stand in for records that never come."""
    dropped_messages: int = 0
    clock_steps: int = 0
    """Times that its host's clock was set during the run, as it says itself."""
    clock_set_ns: int = 0
    """By how much, all together."""

    @property
    def state(self) -> State:
        """How far the agent is."""
        return self.actual.state if self.actual else State.IDLE

    @property
    def clock(self) -> ClockEstimate | None:
        """Its clock against the controller's."""
        return estimate(self.clock_samples) if self.clock_samples else None

    @property
    def clock_change_ns(self) -> int | None:
        """How far its clock has moved against the controller's since the start was chosen.

        None if it has not answered. More than the uncertainty: one of the clocks was set.
        """
        if self.clock_at_start is None or not self.clock_samples:
            return None
        return self.clock_samples[-1].offset_ns - self.clock_at_start.offset_ns

    def is_present(self, now_s: float) -> bool:
        """Return whether the agent can be expected to answer."""
        return self.heard_s is not None and not self.is_lost and not self.is_silent(now_s)

    def is_silent(self, now_s: float) -> bool:
        """Return whether the agent has answered, and then no more for longer than its limit."""
        return self.heard_s is not None and now_s - self.heard_s > self.silence_limit_s

    def __str__(self) -> str:
        """Name the agent and its nodes, for messages."""
        shown = ", ".join(self.nodes[:_NAMED_NODES])
        more = len(self.nodes) - _NAMED_NODES
        return f"agent {self.name} ({shown}{f' and {more} more' if more > 0 else ''})"


class Roster:
    """The agents of a run."""

    def __init__(
        self,
        run: str,
        nodes: Mapping[str, Sequence[str]],
        silence_limit_s: float = AGENT_SILENCE_LIMIT_S,
    ) -> None:
        self._run = run
        self.agents = {
            name: AgentStatus(name, carried, silence_limit_s) for name, carried in nodes.items()
        }
        """Name -> what is known."""
        self.dropped_messages = 0
        """Messages that were malformed or not ours."""

    def handle(self, message: Received, now_s: float, now_realtime_ns: int) -> None:
        """Take in one message."""
        try:
            self._handle(message, now_s, now_realtime_ns)
        except MalformedMessage:
            self.dropped_messages += 1

    def states(self) -> set[State]:
        """Return the states that agents are in."""
        return {agent.state for agent in self.agents.values()}

    def behind(self, state: State) -> list[AgentStatus]:
        """Return the agents that are not in a state."""
        return [agent for agent in self.agents.values() if agent.state is not state]

    def fault(self, now_s: float) -> str | None:
        """Return what is wrong with the first agent that has a fault."""
        return next(filter(None, (_fault(a, now_s) for a in self.agents.values())), None)

    def _handle(self, message: Received, now_s: float, now_realtime_ns: int) -> None:
        topic = topics.parse(message.topic)
        agent = self.agents.get(topic.agent) if topic else None
        if topic is None or agent is None or topic.run not in ("", self._run):
            raise MalformedMessage(f"not for this run: {message.topic!r}")
        if not message.payload:
            return
        if topic.kind == "presence":
            _take_presence(agent, decode(Presence, message.payload))
        elif topic.kind == "actual":
            _take_actual(agent, decode(ActualState, message.payload), now_s)
        elif topic.kind == "heartbeat":
            _take_heartbeat(agent, decode(AgentHeartbeat, message.payload), now_s, now_realtime_ns)
        elif topic.kind == "progress":
            _take_progress(agent, message.payload)


def _take_presence(agent: AgentStatus, presence: Presence) -> None:
    if presence.presence == "lost":
        agent.is_lost = agent.is_lost or agent.incarnation == presence.incarnation


def _take_actual(agent: AgentStatus, actual: ActualState, now_s: float) -> None:
    if agent.incarnation is None:
        agent.incarnation = actual.incarnation
        agent.heard_s = now_s
    if actual.incarnation != agent.incarnation:
        agent.is_lost = True
        return
    agent.actual = actual


def _take_heartbeat(
    agent: AgentStatus, heartbeat: AgentHeartbeat, now_s: float, now_realtime_ns: int
) -> None:
    if heartbeat.incarnation != agent.incarnation:
        raise MalformedMessage("heartbeat of another incarnation")
    agent.heard_s = now_s
    agent.dropped_messages = heartbeat.dropped_messages
    agent.clock_steps, agent.clock_set_ns = heartbeat.clock_steps, heartbeat.clock_set_ns
    agent.clock_samples.append(
        ClockSample(
            heartbeat.controller_sent_realtime_ns,
            heartbeat.received_realtime_ns,
            heartbeat.sent_realtime_ns,
            now_realtime_ns,
        )
    )


def _take_progress(agent: AgentStatus, payload: bytes) -> None:
    tree = columns.decode(payload, limit_bytes=_MAX_UNPACKED_BYTES)
    snapshot, completed = tree.get("snapshot"), tree.get("completed")
    if tree.get("incarnation") != agent.incarnation:
        raise MalformedMessage("progress of another incarnation")
    if not isinstance(snapshot, dict) or not isinstance(completed, dict):
        raise MalformedMessage("progress without snapshot or completed operations")
    if not _is_total(snapshot, ("ops_done", "ops_total", "bytes_delivered", "now_ps")):
        raise MalformedMessage("progress without totals")
    agent.snapshot = snapshot
    agent.completed.append(completed)


def _is_total(snapshot: Mapping[str, Any], keys: Iterable[str]) -> bool:
    return all(isinstance(snapshot.get(key), int) for key in keys)


def _fault(agent: AgentStatus, now_s: float) -> str | None:
    if agent.is_lost:
        return f"{agent} was lost: its process ended or its connection to the broker broke"
    if agent.actual and agent.actual.version != __version__:
        return (
            f"{agent} has rankwire {agent.actual.version or 'of an unknown version'}, the "
            f"controller has {__version__}; install the same version on both sides"
        )
    if agent.state is State.FAILED and agent.actual:
        return f"{agent} failed: {agent.actual.reason}"
    if agent.is_silent(now_s):
        return f"{agent} has not answered for {agent.silence_limit_s:g} s"
    return None

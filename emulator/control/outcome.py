"""What a run gives back: records, facts about the agents, and the errors that keep records."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from dataplane.errors import RunError
from emulator.control.clock import ClockEstimate
from emulator.control.event_orders import OrderedEvent

__all__ = [
    "AgentReport",
    "ControlReport",
    "EngineRecords",
    "Progress",
    "RunFailed",
    "RunInterrupted",
]

EngineRecords = dict[str, Any]
"""Tables of the engine, name -> column -> array; the same from `run` and `predict`."""


@dataclass(frozen=True, slots=True)
class Progress:
    """How far a run is, over all agents."""

    phase: str
    """join, prepare, connect, start, running, stop."""
    operations_done: int = 0
    """Completed operations."""
    operations_total: int = 0
    """Operations of all programs."""
    emulated_ps: int = 0
    """Emulated time."""
    wall_s: float = 0.0
    """Wall time since emulated time 0."""
    late_frames: int = 0
    """Frames that came over their wires after their time, at all agents."""
    notices: Sequence[str] = ()
    """What happened so far that somebody who watches should know, in sentences."""


@dataclass(frozen=True, slots=True)
class AgentReport:
    """Facts about one agent for the records of a run."""

    name: str
    nodes: Sequence[str]
    clock: ClockEstimate | None
    """Its CLOCK_REALTIME against the controller's when the start was chosen, None if it never
    answered."""
    clock_change_ns: int | None
    """How far it moved from then to the last exchange."""
    dropped_messages: int
    """Malformed messages that it dropped."""
    lateness: Mapping[str, Any]
    """How late it dispatched events, wall nanoseconds; empty if it gave no records."""
    has_records: bool
    """Its records came in; if not, its operations come from its progress reports."""
    clock_steps: int = 0
    """Times that its host's clock was set during the run."""
    clock_set_ns: int = 0
    """By how much, all together: new less old time."""
    ports: Mapping[str, Mapping[str, Any]] = field(default_factory=dict)
    """NIC -> what its port can do, as probed; empty where the fabric is emulated."""


@dataclass(frozen=True, slots=True)
class ControlReport:
    """Facts about the control of one run, for its records."""

    run_id: str
    broker: str
    """`embedded`, or the broker's URL without user and password."""
    start_realtime_ns: int | None
    """CLOCK_REALTIME of emulated time 0, None if the run never started."""
    wall_s: float
    """Wall time from emulated time 0 to the stop."""
    dropped_messages: int
    """Malformed messages that the controller dropped."""
    agents: Sequence[AgentReport] = field(default_factory=tuple)
    event_orders: Sequence[OrderedEvent] = field(default_factory=tuple)
    """Events of links that waited for operations, and were ordered."""
    clock_steps: int = 0
    """Times that the clock of the controller's host was set."""
    clock_set_ns: int = 0
    """By how much, all together."""

    @property
    def ports(self) -> dict[str, dict[str, Any]]:
        """What the port of each NIC can do, over all agents."""
        return {nic: dict(port) for agent in self.agents for nic, port in agent.ports.items()}

    def as_dict(self) -> dict[str, Any]:
        """Return the report as plain values for `run.json`."""
        return {
            "run_id": self.run_id,
            "broker": self.broker,
            "start_realtime_ns": self.start_realtime_ns,
            "wall_s": self.wall_s,
            "dropped_messages": self.dropped_messages,
            "clock_steps": self.clock_steps,
            "clock_set_ns": self.clock_set_ns,
            "agents": [_agent_as_dict(agent) for agent in self.agents],
            "event_orders": [_order_as_dict(order) for order in self.event_orders],
        }


def _order_as_dict(order: OrderedEvent) -> dict[str, Any]:
    return {
        "event": order.event,
        "moment_ns": order.moment_ps / 1000,
        "base_ns": order.base_ps / 1000,
        "told_by": order.told_by,
        "ordered_realtime_ns": order.ordered_realtime_ns,
    }


def _agent_as_dict(agent: AgentReport) -> dict[str, Any]:
    return {
        "name": agent.name,
        "nodes": list(agent.nodes),
        "clock_offset_ns": agent.clock.offset_ns if agent.clock else None,
        "clock_uncertainty_ns": agent.clock.uncertainty_ns if agent.clock else None,
        "clock_samples": agent.clock.samples if agent.clock else 0,
        "clock_change_ns": agent.clock_change_ns,
        "clock_steps": agent.clock_steps,
        "clock_set_ns": agent.clock_set_ns,
        "dropped_messages": agent.dropped_messages,
        "lateness": _plain(agent.lateness),
        "has_records": agent.has_records,
    }


def _plain(value: Any) -> Any:
    if isinstance(value, Mapping):
        return {key: _plain(entry) for key, entry in value.items()}
    return value.tolist() if hasattr(value, "tolist") else value


class RunFailed(RunError):  # noqa: N818
    """A run ended before all operations were complete."""

    def __init__(self, message: str) -> None:
        super().__init__(message)
        self.records: EngineRecords | None = None
        """The records so far, None if there are none."""
        self.report: ControlReport | None = None
        """Facts about the agents."""


class RunInterrupted(RunFailed):
    """The user ended the run."""

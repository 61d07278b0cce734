"""Events of links that wait for operations, when several agents carry the job: who is told when.

An agent tells the moments that it sees; what of an event's operations it carries, it alone knows.
When all that count have told, the event is ordered: its changes are counted from an emulated time
that is the same for every agent, and at least the notice away from the moment, so that the order is
there before. It knows no topic and no clock.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Final

__all__ = ["EventOrders", "OrderedEvent"]

_SECOND_LOOK_S: Final = 0.03
"""The first start of several agents is ordered this long after the first report: another may have
an earlier one on its way."""


@dataclass(frozen=True, slots=True)
class OrderedEvent:
    """One event that was ordered."""

    event: int
    """Number of the event in the lab."""
    moment_ps: int
    """When what it waited for came."""
    base_ps: int
    """From when its changes are counted."""
    told_by: str
    """Agent that saw the moment."""
    ordered_realtime_ns: int
    """CLOCK_REALTIME of the controller when it was ordered."""


@dataclass(slots=True)
class _Awaited:
    """An event that has not been ordered."""

    is_end: bool
    agents: frozenset[str]
    """Agents that carry some of its operations."""
    least_after_ps: int
    """From the moment to its first change."""
    told_ps: dict[str, int] = field(default_factory=dict)
    first_told_s: float | None = None

    def is_due(self, now_s: float) -> bool:
        if self.agents <= self.told_ps.keys():
            return True
        if self.is_end or self.first_told_s is None:
            return False
        return now_s - self.first_told_s >= _SECOND_LOOK_S

    def moment(self) -> tuple[int, str]:
        """Return the moment and the agent that saw it."""
        choose = max if self.is_end else min
        return choose((time_ps, name) for name, time_ps in self.told_ps.items())


class EventOrders:
    """The events of a job that wait for operations on some of its agents."""

    def __init__(
        self,
        config: Mapping[str, Any],
        agents_of_ranks: Mapping[int, str],
        notice_ps: int,
    ) -> None:
        """Take the engine's configuration, and who carries what; for more than one agent."""
        self._notice_ps = notice_ps
        self._awaited: dict[int, _Awaited] = {}
        self.ordered: list[OrderedEvent] = []
        """What was ordered, in that order."""
        for number, event in enumerate(config.get("events", ())):
            operations = event["trigger"].get("operations", ())
            agents = frozenset(agents_of_ranks[item["rank"]] for item in operations)
            if agents:
                self._awaited[number] = _Awaited(
                    is_end=event["trigger"]["kind"] == "last_end",
                    agents=agents,
                    least_after_ps=min(change["after_ps"] for change in event["changes"]),
                )

    @property
    def is_waiting(self) -> bool:
        """Whether some event has not been ordered."""
        return bool(self._awaited)

    def take(self, agent: str, moments: Sequence[tuple[int, int]], now_s: float) -> None:
        """Take in moments that an agent tells: event and emulated ps; again makes no difference."""
        for event, time_ps in moments:
            awaited = self._awaited.get(event)
            if awaited is not None and agent in awaited.agents:
                awaited.told_ps.setdefault(agent, time_ps)
                if awaited.first_told_s is None:
                    awaited.first_told_s = now_s

    def order(self, now_s: float, now_realtime_ns: int) -> bool:
        """Order what has become due; returns whether there was anything."""
        due = [number for number, awaited in self._awaited.items() if awaited.is_due(now_s)]
        for number in due:
            awaited = self._awaited.pop(number)
            moment_ps, agent = awaited.moment()
            wait_ps = max(self._notice_ps - awaited.least_after_ps, 0)
            self.ordered.append(
                OrderedEvent(number, moment_ps, moment_ps + wait_ps, agent, now_realtime_ns)
            )
        return bool(due)

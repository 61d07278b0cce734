"""What an agent does next: a pure function of desired and actual state.

The steps of a run are a table. An agent that finds itself several steps behind (the retained
message of a late joiner, a phase that came before the last one was done) walks all of them; one
that is ahead or broken does nothing. Applying is the business of `agent_run`.

Prohibited, with the reason:

* back from a later step to an earlier one: traffic cannot be unsent; a new run has a new id;
* another job under a prepared agent: the programs of all agents belong together;
* anything but `stop` and `release` after `failed`: a failed agent has no engine to go on with.
"""

from dataclasses import dataclass
from enum import StrEnum
from typing import Final

from emulator.control.messages import DesiredState, Phase, State

__all__ = ["STEPS", "TARGETS", "Action", "Actual", "Refusal", "diff"]


class Action(StrEnum):
    """One step that an agent takes; its arguments stand in the desired state."""

    JOIN = "join"
    PREPARE = "prepare"
    CONNECT = "connect"
    START = "start"
    STOP = "stop"
    RELEASE = "release"


@dataclass(frozen=True, slots=True)
class Refusal:
    """The desired state cannot be reached from the actual one."""

    reason: str


@dataclass(frozen=True, slots=True)
class Actual:
    """What an agent knows of itself."""

    state: State = State.IDLE
    job_sha256: str | None = None
    """Digest of the job that is prepared."""


STEPS: Final[dict[State, tuple[Action, State]]] = {
    State.IDLE: (Action.JOIN, State.JOINED),
    State.JOINED: (Action.PREPARE, State.PREPARED),
    State.PREPARED: (Action.CONNECT, State.CONNECTED),
    State.CONNECTED: (Action.START, State.RUNNING),
}
"""The way up: from each state the action that leads on, and to where."""

TARGETS: Final[dict[Phase, State]] = {
    Phase.JOIN: State.JOINED,
    Phase.PREPARE: State.PREPARED,
    Phase.CONNECT: State.CONNECTED,
    Phase.START: State.RUNNING,
    Phase.STOP: State.STOPPED,
    Phase.RELEASE: State.IDLE,
}
"""The state that each phase asks for."""

_ORDER: Final = tuple(State)


def diff(desired: DesiredState, actual: Actual) -> tuple[Action, ...] | Refusal:
    """Return the actions, in order, that lead from the actual to the desired state.

    Empty when there is nothing to do, so that a repeated message has no effect.
    """
    if desired.phase is Phase.RELEASE:
        return _release(actual)
    if desired.phase is Phase.STOP:
        return _stop(actual)
    if actual.state in (State.STOPPED, State.FAILED):
        return Refusal(f"{desired.phase} asked of an agent that is {actual.state}")
    return _climb(desired, actual)


def _release(actual: Actual) -> tuple[Action, ...]:
    if actual.state is State.IDLE:
        return ()
    return (Action.STOP, Action.RELEASE) if actual.state is State.RUNNING else (Action.RELEASE,)


def _stop(actual: Actual) -> tuple[Action, ...]:
    if actual.state is State.STOPPED:
        return ()
    return (Action.JOIN, Action.STOP) if actual.state is State.IDLE else (Action.STOP,)


def _climb(desired: DesiredState, actual: Actual) -> tuple[Action, ...] | Refusal:
    target = TARGETS[desired.phase]
    if _ORDER.index(actual.state) > _ORDER.index(target):
        return Refusal(f"{desired.phase} asked of an agent that is already {actual.state}")
    if actual.job_sha256 and desired.job and desired.job.sha256 != actual.job_sha256:
        return Refusal("another job asked of an agent that is prepared for one")
    actions = []
    state = actual.state
    while state is not target:
        action, state = STEPS[state]
        actions.append(action)
    return _with_arguments(desired, tuple(actions))


def _with_arguments(
    desired: DesiredState, actions: tuple[Action, ...]
) -> tuple[Action, ...] | Refusal:
    if Action.PREPARE in actions and desired.job is None:
        return Refusal(f"{desired.phase} asked without a job")
    if Action.START in actions and desired.start_realtime_ns is None:
        return Refusal("start asked without an instant")
    return actions

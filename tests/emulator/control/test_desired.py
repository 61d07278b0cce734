"""What an agent does next, for every pair of desired phase and actual state."""

import pytest

from emulator.control.desired import Action, Actual, Refusal, diff
from emulator.control.messages import BlobReference, DesiredState, Phase, State

JOB = BlobReference(url="http://127.0.0.1:1/blobs/x", sha256="a" * 64, size_bytes=1)
OTHER_JOB = BlobReference(url="http://127.0.0.1:1/blobs/y", sha256="b" * 64, size_bytes=1)
UP = {
    Phase.JOIN: State.JOINED,
    Phase.PREPARE: State.PREPARED,
    Phase.CONNECT: State.CONNECTED,
    Phase.START: State.RUNNING,
}


def desire(phase: Phase, job: BlobReference | None = JOB) -> DesiredState:
    """Return a complete desired state."""
    return DesiredState(revision=1, phase=phase, job=job, start_realtime_ns=1)


def actual(state: State) -> Actual:
    """Return an actual state with the job that it must have."""
    prepared = state in (State.PREPARED, State.CONNECTED, State.RUNNING)
    return Actual(state, JOB.sha256 if prepared else None)


@pytest.mark.parametrize("phase", UP)
def test_nothing_is_done_when_the_phase_is_reached(phase: Phase) -> None:
    """A repeated message has no effect."""
    assert diff(desire(phase), actual(UP[phase])) == ()


def test_an_agent_that_is_behind_walks_every_step() -> None:
    """A late agent catches up in order."""
    assert diff(desire(Phase.START), Actual()) == (
        Action.JOIN,
        Action.PREPARE,
        Action.CONNECT,
        Action.START,
    )


@pytest.mark.parametrize(
    ("phase", "state"),
    [
        (phase, state)
        for phase, reached in UP.items()
        for state in UP.values()
        if list(State).index(state) > list(State).index(reached)
    ],
)
def test_an_agent_never_goes_back(phase: Phase, state: State) -> None:
    """Traffic cannot be unsent."""
    assert isinstance(diff(desire(phase), actual(state)), Refusal)


@pytest.mark.parametrize("phase", UP)
@pytest.mark.parametrize("state", [State.STOPPED, State.FAILED])
def test_after_its_end_a_run_cannot_go_on(phase: Phase, state: State) -> None:
    """Only stop and release are possible after stopped and failed."""
    assert isinstance(diff(desire(phase), actual(state)), Refusal)


def test_another_job_is_refused_once_one_is_prepared() -> None:
    """The programs of all agents belong together."""
    refusal = diff(desire(Phase.START, OTHER_JOB), actual(State.PREPARED))
    assert isinstance(refusal, Refusal)


def test_prepare_needs_a_job() -> None:
    """There is nothing to prepare without one."""
    assert isinstance(diff(desire(Phase.PREPARE, None), Actual(State.JOINED)), Refusal)


def test_start_needs_an_instant() -> None:
    """All agents start at the same time or not at all."""
    desired = DesiredState(revision=1, phase=Phase.START, job=JOB)
    assert isinstance(diff(desired, actual(State.CONNECTED)), Refusal)


@pytest.mark.parametrize("state", [s for s in State if s not in (State.STOPPED, State.IDLE)])
def test_stop_is_possible_in_every_state(state: State) -> None:
    """A run can be ended whatever it is doing."""
    assert diff(desire(Phase.STOP), actual(state)) == (Action.STOP,)


def test_stop_is_done_once() -> None:
    """A stopped agent is left alone."""
    assert diff(desire(Phase.STOP), actual(State.STOPPED)) == ()


def test_a_running_agent_stops_before_it_is_released() -> None:
    """Release alone would leave traffic behind."""
    assert diff(desire(Phase.RELEASE), actual(State.RUNNING)) == (Action.STOP, Action.RELEASE)


def test_an_idle_agent_has_nothing_to_release() -> None:
    """A stale release has no effect."""
    assert diff(desire(Phase.RELEASE), Actual()) == ()

"""Whether this host's clock is set, on clocks of the test's own."""

import time

import pytest

from emulator.control.clock_watch import LEAST_STEP_NS, ClockNotices, ClockWatch


class Clocks:
    """A host's two clocks; looks at them take time."""

    def __init__(self) -> None:
        self.now_ns = 5 * 10**9
        self.ahead_ns = 1_700_000_000 * 10**9
        self.look_ns = 100
        self.interrupted_looks = 0

    def monotonic(self) -> int:
        """Look at the clock that nobody sets."""
        self.now_ns += self.look_ns
        if self.interrupted_looks:
            self.interrupted_looks -= 1
            self.now_ns += 20_000_000
        return self.now_ns

    def realtime(self) -> int:
        """Look at the clock that may be set."""
        self.now_ns += self.look_ns
        return self.now_ns + self.ahead_ns


@pytest.fixture
def clocks() -> Clocks:
    return Clocks()


@pytest.fixture
def watch(clocks: Clocks) -> ClockWatch:
    return ClockWatch(clocks.realtime, clocks.monotonic)


def test_time_that_passes_is_no_step(clocks: Clocks, watch: ClockWatch) -> None:
    """However much, and also if each look takes its time."""
    for passed_ns in (1, 10**9, 10**15):
        clocks.now_ns += passed_ns
        assert watch.look() == 0
    clocks.look_ns = 10**9
    assert watch.look() == 0
    assert (watch.steps, watch.total_ns) == (0, 0)


def test_every_step_is_told_once_with_its_size(clocks: Clocks, watch: ClockWatch) -> None:
    """Forwards and back; the sum is what the clock is off by since the beginning."""
    for change_ns in (3600 * 10**9, -10 * 10**9, 2 * LEAST_STEP_NS):
        clocks.ahead_ns += change_ns
        assert watch.look() == pytest.approx(change_ns, abs=1000)
        assert watch.look() == 0
    assert watch.steps == 3
    assert watch.total_ns == pytest.approx(3590 * 10**9 + 2 * LEAST_STEP_NS, abs=3000)


def test_a_process_that_loses_its_processor_between_looks_sees_no_step(
    clocks: Clocks, watch: ClockWatch
) -> None:
    """It looks again; if that does not help, what it saw is doubtful by as much."""
    for interrupted in (1, 2, 100):
        clocks.interrupted_looks = interrupted
        assert watch.look() == 0
    clocks.interrupted_looks = 0
    clocks.ahead_ns += 10**9
    assert watch.look() == pytest.approx(10**9, abs=1000)


def test_a_doubtful_beginning_is_made_good_by_a_later_look(clocks: Clocks) -> None:
    """A small step is seen then that would have been within the doubt."""
    clocks.interrupted_looks = 100
    watch = ClockWatch(clocks.realtime, clocks.monotonic)
    clocks.interrupted_looks = 0
    assert watch.look() == 0
    clocks.ahead_ns += 5_000_000
    assert watch.look() == pytest.approx(5_000_000, abs=1000)


def test_this_hosts_clock_is_looked_at_anew_each_time(monkeypatch: pytest.MonkeyPatch) -> None:
    watch = ClockWatch()
    real = time.time_ns
    monkeypatch.setattr(time, "time_ns", lambda: real() - 7 * 10**9)
    assert watch.look() == pytest.approx(-7 * 10**9, abs=10**8)


def test_each_step_of_a_clock_is_told_once() -> None:
    """Whatever its host says of it afterwards."""
    notices = ClockNotices()
    for who, steps, total_ns in (("a", 0, 0), ("a", 1, 10**9), ("b", 1, -(10**9)), ("a", 1, 7)):
        notices.note(who, steps, total_ns)
    assert [text.split(";")[0] for text in notices.sentences()] == [
        "the clock of a was set by +1.000 s",
        "the clock of b was set by -1.000 s",
    ]


def test_a_host_that_tells_of_ever_more_steps_is_not_listened_to_for_ever() -> None:
    notices = ClockNotices()
    for steps in range(1000):
        notices.note("a", steps, steps * 10**9)
    assert len(notices.sentences()) == 8

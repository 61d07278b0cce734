"""Clock offsets between controller and agents."""

import time

from hypothesis import given
from hypothesis import strategies as st

from emulator.control.clock import ClockSample, estimate, monotonic_instant_ns

DELAY = st.integers(min_value=0, max_value=10_000_000)


def exchange(offset_ns: int, there_ns: int, back_ns: int, sent_ns: int = 10**12) -> ClockSample:
    """Return the exchange with an agent whose clock is ahead by some time."""
    received_ns = sent_ns + there_ns + offset_ns
    answered_ns = received_ns + 1000
    return ClockSample(sent_ns, received_ns, answered_ns, answered_ns - offset_ns + back_ns)


@given(st.integers(min_value=-(10**10), max_value=10**10), DELAY, DELAY)
def test_the_true_offset_is_within_the_uncertainty(offset: int, there: int, back: int) -> None:
    """However unequal the two ways are."""
    result = estimate([exchange(offset, there, back)])
    assert abs(result.offset_ns - offset) <= result.uncertainty_ns


def test_the_shortest_exchange_counts() -> None:
    """A short round trip bounds the offset best."""
    result = estimate([exchange(500, 90_000, 10), exchange(500, 100, 100), exchange(500, 0, 9000)])
    assert (result.offset_ns, result.samples) == (500, 3)


def test_an_insignificant_offset_is_not_corrected() -> None:
    """Clocks that agree within the uncertainty are left alone."""
    assert estimate([exchange(500, 10_000, 10_000)]).correction_ns == 0


def test_a_significant_offset_is_corrected() -> None:
    """A clock that is seconds ahead gets a later instant."""
    assert estimate([exchange(5 * 10**9, 10_000, 10_000)]).correction_ns == 5 * 10**9


def test_an_instant_keeps_its_distance_from_now() -> None:
    """The monotonic instant of a time one second ahead is one second ahead."""
    ahead_ns = monotonic_instant_ns(time.time_ns() + 10**9) - time.monotonic_ns()
    assert abs(ahead_ns - 10**9) < 50_000_000

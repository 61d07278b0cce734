"""A token bucket under a clock of the test's."""

from emulator.control.rate_limit import RateLimit


def allowed(limit: RateLimit, count: int, now_s: float) -> int:
    """Ask for some messages at one instant; returns how many were allowed."""
    return sum(limit.allows(now_s) for _ in range(count))


def test_a_seconds_worth_may_come_at_once() -> None:
    """And no more."""
    assert allowed(RateLimit(10), 25, now_s=3.0) == 10


def test_tokens_come_back_with_time() -> None:
    """At the rate, and never more than a second's worth."""
    limit = RateLimit(10)
    allowed(limit, 10, now_s=0.0)
    assert allowed(limit, 10, now_s=0.5) == 5
    assert allowed(limit, 100, now_s=60.0) == 10


def test_an_instant_of_the_past_brings_nothing() -> None:
    """Nor does it make the time after it count twice."""
    limit = RateLimit(10)
    allowed(limit, 10, now_s=5.0)
    assert allowed(limit, 10, now_s=1.0) == 0
    assert allowed(limit, 10, now_s=5.0) == 0

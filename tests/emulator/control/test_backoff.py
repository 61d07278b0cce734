"""Agents that have lost a broker come back to it one by one."""

import random

import pytest

from emulator.control.backoff import FIRST_BOUND_S, LAST_BOUND_S, Backoff

AGENTS = 64


def seeded(seed: int) -> random.Random:
    return random.Random(seed)  # noqa: S311


def drawn(pauses: int, seed: int = 1) -> list[float]:
    backoff = Backoff(seeded(seed))
    return [backoff.pause_s() for _ in range(pauses)]


def test_bounds_double_up_to_the_last() -> None:
    """What was drawn, over what is drawn from 0 to 1 by the same seed."""
    parts = seeded(1)
    bounds = [pause / parts.random() for pause in drawn(6)]
    assert bounds == pytest.approx([1.0, 2.0, 4.0, 8.0, 8.0, 8.0])
    assert (FIRST_BOUND_S, LAST_BOUND_S) == (1.0, 8.0)


def test_the_same_seed_draws_the_same_pauses_and_others_do_not() -> None:
    assert drawn(5) == drawn(5)
    assert drawn(5) != drawn(5, seed=2)
    assert Backoff().pause_s() != Backoff().pause_s()


def test_many_agents_do_not_return_at_once() -> None:
    """Of 64, no more than a quarter in any tenth of the first second, and fewer later."""
    firsts = sorted(drawn(1, seed)[0] for seed in range(AGENTS))
    assert most_within(firsts, 0.1) <= AGENTS // 4
    fourths = sorted(sum(drawn(4, seed)) for seed in range(AGENTS))
    assert most_within(fourths, 0.1) <= AGENTS // 10


def most_within(times_s: list[float], window_s: float) -> int:
    """Most instants that any window of a length holds."""
    return max(sum(t <= u < t + window_s for u in times_s) for t in times_s)


def test_only_a_connection_that_held_begins_anew() -> None:
    backoff = Backoff(seeded(3))
    for _ in range(4):
        backoff.pause_s()
    backoff.held(LAST_BOUND_S / 2)
    parts = seeded(3)
    used = [parts.random() for _ in range(5)]
    assert backoff.pause_s() == pytest.approx(LAST_BOUND_S * used[4])
    backoff.held(LAST_BOUND_S)
    assert backoff.pause_s() == pytest.approx(FIRST_BOUND_S * parts.random())

"""Pauses before a lost connection is made again: random, within bounds that double.

Many agents lose one broker at the same instant. With pauses of the same length they would come back
together, each time; with pauses drawn from all of the interval they come one by one.
"""

import random
from typing import Final

__all__ = ["FIRST_BOUND_S", "LAST_BOUND_S", "Backoff"]

FIRST_BOUND_S: Final = 1.0
"""Longest first pause."""
LAST_BOUND_S: Final = 8.0
"""Longest pause of all."""


class Backoff:
    """Bounded exponential backoff with full jitter.

    *Source*: M. Brooker, "Exponential Backoff And Jitter", AWS Architecture Blog, 2015.
    """

    def __init__(self, source: random.Random | None = None) -> None:
        """Draw from `source`, by default one that no two processes share."""
        self._source = source or random.Random()  # noqa: S311
        self._bound_s = FIRST_BOUND_S

    def pause_s(self) -> float:
        """Return the next pause: anything from 0 to a bound that doubles with each call."""
        bound_s = self._bound_s
        self._bound_s = min(2 * bound_s, LAST_BOUND_S)
        return self._source.uniform(0, bound_s)

    def held(self, connected_s: float) -> None:
        """Begin anew if a connection has held for long enough to call it one.

        A broker that takes connections and drops them at once is left in peace like one that is
        away.
        """
        if connected_s >= LAST_BOUND_S:
            self._bound_s = FIRST_BOUND_S

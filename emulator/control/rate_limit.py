"""How many messages per second are looked at; time is an argument."""

__all__ = ["RateLimit"]


class RateLimit:
    """A token bucket: `per_second` on average, and a second's worth at once."""

    def __init__(self, per_second: float) -> None:
        self._per_second = per_second
        self._tokens = per_second
        self._filled_s: float | None = None

    def allows(self, now_s: float) -> bool:
        """Take a token for one message at an instant; False when there is none left.

        An instant before the last one counts as the last one.
        """
        since_s = 0.0 if self._filled_s is None else max(now_s - self._filled_s, 0.0)
        self._filled_s = now_s if self._filled_s is None else max(now_s, self._filled_s)
        self._tokens = min(self._tokens + since_s * self._per_second, self._per_second)
        if self._tokens < 1.0:
            return False
        self._tokens -= 1.0
        return True

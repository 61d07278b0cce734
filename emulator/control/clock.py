"""Clocks of controller and agents: how far they are apart, and one start instant for all.

Pure arithmetic on instants in nanoseconds; who sends what is the business of `controller`.
"""

import time
from collections.abc import Sequence
from dataclasses import dataclass

__all__ = ["ClockEstimate", "ClockSample", "estimate", "monotonic_instant_ns"]


@dataclass(frozen=True, slots=True)
class ClockSample:
    """One exchange: sent by the controller, received and answered by the agent, returned."""

    sent_ns: int
    received_ns: int
    answered_ns: int
    returned_ns: int

    @property
    def round_trip_ns(self) -> int:
        """Time on the way, without the agent's own."""
        return (self.returned_ns - self.sent_ns) - (self.answered_ns - self.received_ns)

    @property
    def offset_ns(self) -> int:
        """Agent's clock minus the controller's, if both ways took equally long.

        *Source*: RFC 5905 section 8, theta.
        """
        return ((self.received_ns - self.sent_ns) + (self.answered_ns - self.returned_ns)) // 2


@dataclass(frozen=True, slots=True)
class ClockEstimate:
    """An agent's CLOCK_REALTIME against the controller's."""

    offset_ns: int
    """Agent minus controller."""
    uncertainty_ns: int
    """The true offset is within plus or minus this: half the round trip."""
    samples: int
    """Exchanges that were made."""

    @property
    def correction_ns(self) -> int:
        """What is added to an instant for the agent: the offset if it is significant, else 0.

        Hosts whose clocks are kept together by PTP or NTP are left alone, because half a round
        trip over a broker is a worse measure than theirs.
        """
        return self.offset_ns if abs(self.offset_ns) > self.uncertainty_ns else 0


def estimate(samples: Sequence[ClockSample]) -> ClockEstimate:
    """Return the estimate from the exchange with the shortest round trip."""
    best = min(samples, key=lambda sample: sample.round_trip_ns)
    return ClockEstimate(best.offset_ns, max(best.round_trip_ns, 0) // 2 + 1, len(samples))


def monotonic_instant_ns(realtime_ns: int) -> int:
    """Return the CLOCK_MONOTONIC instant of a CLOCK_REALTIME instant on this host."""
    return time.monotonic_ns() + (realtime_ns - time.time_ns())

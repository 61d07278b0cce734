"""Barrier and point-to-point transfer: messages that are sent even without a byte."""

import numpy as np

from traffic_profiles.collectives.algorithm import Algorithm, Parameters
from traffic_profiles.collectives.schedule import Ints, Schedule, ScheduleBuilder

__all__ = ["BARRIER", "SEND_RECV"]


def expand_dissemination(ranks: int, _: int, __: Parameters) -> Schedule:
    """ceil(log2 n) rounds of an empty message to the rank 1, 2, 4 ... further; no size counts.

    Source: Hensgen, Finkel and Manber 1988.
    """
    builder = ScheduleBuilder(ranks)
    rank = np.arange(ranks)
    received: list[Ints] = []
    for distance in (1 << level for level in range((ranks - 1).bit_length())):
        messages = builder.messages(rank, (rank + distance) % ranks, 0, 0)
        for earlier in received:
            builder.after(messages.sends, earlier)
        received.append(messages.receives[(rank - distance) % ranks])
    return builder.build(keep_empty=True)


def no_bytes(ranks: int, _: int, __: Parameters) -> Ints:
    """Nothing."""
    return np.zeros(ranks, np.int64)


def expand_transfer(ranks: int, size_bytes: int, _: Parameters) -> Schedule:
    """One message from position 0 to position 1."""
    builder = ScheduleBuilder(ranks)
    builder.messages(0, 1, size_bytes, 0)
    return builder.build(keep_empty=True)


def transfer_bytes(_: int, size_bytes: int, __: Parameters) -> Ints:
    """Everything, by position 0."""
    return np.array([size_bytes, 0], np.int64)


BARRIER = {
    "dissemination": Algorithm(
        expand_dissemination, no_bytes, "ceil(log2 n) rounds of an empty message"
    )
}
"""Algorithms of barrier by name."""
SEND_RECV = {"direct": Algorithm(expand_transfer, transfer_bytes, "one message")}
"""Algorithms of send/recv by name."""

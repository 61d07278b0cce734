"""Reduce-scatter: rank r ends with block r of the sum; S is the full input buffer of a rank."""

import numpy as np

from traffic_profiles.collectives.algorithm import Algorithm, Parameters
from traffic_profiles.collectives.blocks import block_offset, block_sizes
from traffic_profiles.collectives.schedule import Ints, Schedule, ScheduleBuilder

__all__ = ["REDUCE_SCATTER"]


def expand_ring(ranks: int, size_bytes: int, _: Parameters) -> Schedule:
    """n-1 steps of one partial sum to the next rank."""
    builder = ScheduleBuilder(ranks)
    rank, step = np.arange(ranks), np.arange(ranks - 1)[:, None]
    block = (rank - 1 - step) % ranks
    size, offset = block_sizes(size_bytes, ranks)[block], block_offset(size_bytes, ranks, block)
    messages = builder.messages(rank, (rank + 1) % ranks, size, offset, reduces=True)
    builder.after(messages.sends[1:], messages.receives[:-1, rank - 1])
    return builder.build()


def expand_direct(ranks: int, size_bytes: int, _: Parameters) -> Schedule:
    """Each block to its owner at once; incast of n-1."""
    builder = ScheduleBuilder(ranks)
    rank, shift = np.arange(ranks), np.arange(1, ranks)[:, None]
    block = (rank + shift) % ranks
    size, offset = block_sizes(size_bytes, ranks)[block], block_offset(size_bytes, ranks, block)
    builder.messages(rank, block, size, offset, reduces=True)
    return builder.build()


def all_but_own(ranks: int, size_bytes: int, _: Parameters) -> Ints:
    """Everything but the own block."""
    return size_bytes - block_sizes(size_bytes, ranks)


REDUCE_SCATTER = {
    "ring": Algorithm(expand_ring, all_but_own, "n-1 steps of S/n to the next rank"),
    "direct": Algorithm(expand_direct, all_but_own, "S/n to each of the others at once"),
}
"""Algorithms of reduce-scatter by name."""

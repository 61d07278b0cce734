"""All-gather: every rank ends with all blocks; S is the full output buffer, n times the shard."""

import numpy as np

from traffic_profiles.collectives.algorithm import Algorithm, Parameters
from traffic_profiles.collectives.blocks import block_offset, block_sizes
from traffic_profiles.collectives.schedule import Ints, Schedule, ScheduleBuilder

__all__ = ["ALL_GATHER"]


def expand_ring(ranks: int, size_bytes: int, _: Parameters) -> Schedule:
    """n-1 steps of one block to the next rank, the own one first."""
    builder = ScheduleBuilder(ranks)
    rank, step = np.arange(ranks), np.arange(ranks - 1)[:, None]
    block = (rank - step) % ranks
    size, offset = block_sizes(size_bytes, ranks)[block], block_offset(size_bytes, ranks, block)
    messages = builder.messages(rank, (rank + 1) % ranks, size, offset)
    builder.after(messages.sends[1:], messages.receives[:-1, rank - 1])
    return builder.build()


def ring_bytes(ranks: int, size_bytes: int, _: Parameters) -> Ints:
    """Everything but the block that the next rank owns."""
    return size_bytes - np.roll(block_sizes(size_bytes, ranks), -1)


def expand_direct(ranks: int, size_bytes: int, _: Parameters) -> Schedule:
    """Send the own block to everybody at once; incast of n-1."""
    builder = ScheduleBuilder(ranks)
    rank, shift = np.arange(ranks), np.arange(1, ranks)[:, None]
    sizes, offsets = block_sizes(size_bytes, ranks), block_offset(size_bytes, ranks, rank)
    builder.messages(rank, (rank + shift) % ranks, sizes, offsets)
    return builder.build()


def direct_bytes(ranks: int, size_bytes: int, _: Parameters) -> Ints:
    """Count the own block for each of the others."""
    return (ranks - 1) * block_sizes(size_bytes, ranks)


def doubling_rounds(ranks: int) -> list[tuple[int, int]]:
    """Distance and number of blocks of each round."""
    distances = [1 << level for level in range((ranks - 1).bit_length())]
    return [(distance, min(distance, ranks - distance)) for distance in distances]


def run_bytes(ranks: int, size_bytes: int, count: int) -> Ints:
    """Bytes of the `count` blocks from each rank's own on, around the end: `int64[ranks]`."""
    end = np.arange(ranks) + count
    wrapped = (end // ranks) * size_bytes + block_offset(size_bytes, ranks, end % ranks)
    return wrapped - block_offset(size_bytes, ranks, np.arange(ranks))


def expand_recursive_doubling(ranks: int, size_bytes: int, _: Parameters) -> Schedule:
    """ceil(log2 n) rounds, each of all blocks held so far; in Bruck's form, for any n."""
    builder = ScheduleBuilder(ranks)
    rank = np.arange(ranks)
    own = block_offset(size_bytes, ranks, rank)
    received: list[Ints] = []
    for distance, count in doubling_rounds(ranks):
        size = run_bytes(ranks, size_bytes, count)
        messages = builder.messages(rank, (rank - distance) % ranks, size, own)
        for earlier in received:
            builder.after(messages.sends, earlier)
        received.append(messages.receives[(rank + distance) % ranks])
    return builder.build()


def recursive_doubling_bytes(ranks: int, size_bytes: int, _: Parameters) -> Ints:
    """Count the run of blocks of each round."""
    rounds = [run_bytes(ranks, size_bytes, count) for _, count in doubling_rounds(ranks)]
    return np.asarray(np.sum(rounds, axis=0), np.int64)


ALL_GATHER = {
    "ring": Algorithm(expand_ring, ring_bytes, "n-1 steps of S/n to the next rank"),
    "direct": Algorithm(expand_direct, direct_bytes, "the own S/n to each of the others at once"),
    "recursive_doubling": Algorithm(
        expand_recursive_doubling,
        recursive_doubling_bytes,
        "ceil(log2 n) rounds of S/n, 2S/n, 4S/n ...",
    ),
}
"""Algorithms of all-gather by name."""

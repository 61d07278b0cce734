"""All-reduce: every rank ends with the sum of all buffers.

Source: Thakur, Rabenseifner and Gropp 2005 (ring, recursive halving and doubling); Sanders, Speck
and Traeff 2009 (two trees), with NCCL's tree shapes.
"""

import numpy as np

from traffic_profiles.collectives.algorithm import Algorithm, Parameters
from traffic_profiles.collectives.blocks import block_offset, block_sizes, pieces
from traffic_profiles.collectives.schedule import Ints, Messages, Schedule, ScheduleBuilder

__all__ = ["ALL_REDUCE"]


def expand_ring(ranks: int, size_bytes: int, _: Parameters) -> Schedule:
    """2(n-1) steps of one block to the next rank: first summing, then distributing."""
    builder = ScheduleBuilder(ranks)
    rank, step = np.arange(ranks), np.arange(ranks - 1)[:, None]
    block = np.concatenate([(rank - step) % ranks, (rank + 1 - step) % ranks])
    messages = builder.messages(
        rank,
        (rank + 1) % ranks,
        block_sizes(size_bytes, ranks)[block],
        block_offset(size_bytes, ranks, block),
        reduces=np.arange(len(block))[:, None] < ranks - 1,
    )
    builder.after(messages.sends[1:], messages.receives[:-1, rank - 1])
    return builder.build()


def ring_bytes(ranks: int, size_bytes: int, _: Parameters) -> Ints:
    """Everything twice, except one block in each half."""
    block, rank = block_sizes(size_bytes, ranks), np.arange(ranks)
    return 2 * size_bytes - block[(rank + 1) % ranks] - block[(rank + 2) % ranks]


def core_ranks(ranks: int) -> int:
    """Largest power of two that is not above `ranks`."""
    return 1 << (ranks.bit_length() - 1)


def expand_halving_doubling(ranks: int, size_bytes: int, _: Parameters) -> Schedule:
    """Recursive halving, then doubling; ranks beyond a power of two fold into the core."""
    builder = ScheduleBuilder(ranks)
    core = core_ranks(ranks)
    rank, extra = np.arange(core), np.arange(ranks - core)
    fold = builder.messages(core + extra, extra, size_bytes, 0, reduces=True)
    received: list[Ints] = []
    distances = [core >> level for level in range(1, core.bit_length())]
    for distance, halving in [(d, True) for d in distances] + [(d, False) for d in distances[::-1]]:
        partner = rank ^ distance
        start = (partner if halving else rank) & ~(distance - 1)
        offset = block_offset(size_bytes, core, start)
        size = block_offset(size_bytes, core, start + distance) - offset
        exchange = builder.messages(rank, partner, size, offset, reduces=halving)
        builder.after(exchange.sends[: extra.size], fold.receives)
        for earlier in received:
            builder.after(exchange.sends, earlier)
        received.append(exchange.receives[partner])
    unfold = builder.messages(extra, core + extra, size_bytes, 0)
    for earlier in [fold.receives, *(numbers[: extra.size] for numbers in received)]:
        builder.after(unfold.sends, earlier)
    return builder.build()


def halving_doubling_bytes(ranks: int, size_bytes: int, _: Parameters) -> Ints:
    """Core: all but the own block, then each range held; folded ranks: everything once."""
    core = core_ranks(ranks)
    rank = np.arange(core)
    sent = np.full(ranks, size_bytes, np.int64)
    sent[:core] = size_bytes - block_sizes(size_bytes, core)
    sent[: ranks - core] += size_bytes
    for level in range(core.bit_length() - 1):
        start = rank >> level << level
        ends = block_offset(size_bytes, core, start + (1 << level))
        sent[:core] += ends - block_offset(size_bytes, core, start)
    return sent


def tree_parents(ranks: int) -> tuple[Ints, Ints]:
    """Parents in both trees, -1 at the root: an in-order binary tree, and its mirror or shift.

    Source: NCCL's tree shapes: the mirror image for an even number of ranks, shifted by one for an
    odd number, so that a rank is inner node in one tree at most.
    """
    rank = np.arange(ranks, dtype=np.int64)
    lowest_bit = rank & -rank
    above = (rank ^ lowest_bit) | (lowest_bit << 1)
    first = np.where(above < ranks, above, rank ^ lowest_bit)
    first[0] = -1
    if ranks % 2 == 0:
        second = np.where(first >= 0, ranks - 1 - first, -1)[::-1]
    else:
        second = np.roll(np.where(first >= 0, (first + 1) % ranks, -1), 1)
    return first, second.copy()


def tree_halves(size_bytes: int) -> tuple[int, int]:
    """Bytes that each of the two trees carries."""
    return size_bytes - size_bytes // 2, size_bytes // 2


def expand_double_binary_tree(ranks: int, size_bytes: int, parameters: Parameters) -> Schedule:
    """Two trees, half of the buffer each, up and down again, piece by piece."""
    builder = ScheduleBuilder(ranks)
    offset = 0
    for parents, half in zip(tree_parents(ranks), tree_halves(size_bytes), strict=True):
        add_tree(builder, parents, half, offset, parameters)
        offset += half
    return builder.build()


def add_tree(
    builder: ScheduleBuilder, parents: Ints, half: int, first_byte: int, parameters: Parameters
) -> None:
    """Add one tree: a parent waits for all its children, for each piece by itself."""
    child = np.flatnonzero(parents >= 0)
    parent = parents[child]
    hops = 2 * (builder.ranks - 1).bit_length()
    count = pieces(half, hops, parameters.chunk_bytes, shrink=True)
    size = block_sizes(half, count)[:, None]
    offset = first_byte + block_offset(half, count, np.arange(count))[:, None]
    up = builder.messages(child, parent, size, offset, reduces=True)
    down = builder.messages(parent, child, size, offset)
    edge_to_parent = np.full(builder.ranks, -1)
    edge_to_parent[child] = np.arange(child.size)
    above = edge_to_parent[parent]
    inner, top = np.flatnonzero(above >= 0), np.flatnonzero(above < 0)
    builder.after(up.sends[:, above[inner]], up.receives[:, inner])
    builder.after(down.sends[:, inner], down.receives[:, above[inner]])
    builder.after(down.sends[:, top, None], up.receives[:, None, top])


def double_binary_tree_bytes(ranks: int, size_bytes: int, _: Parameters) -> Ints:
    """In each tree its half for the parent and for every child."""
    sent = np.zeros(ranks, np.int64)
    for parents, half in zip(tree_parents(ranks), tree_halves(size_bytes), strict=True):
        has_parent = parents >= 0
        sent += half * (has_parent + np.bincount(parents[has_parent], minlength=ranks))
    return sent


def exchange_with_all(
    builder: ScheduleBuilder, size: Ints, offset: Ints, *, reduces: bool
) -> Messages:
    """Every rank sends to every other at once; `size` and `offset` are `int64[n - 1, n]`."""
    ranks = builder.ranks
    rank, shift = np.arange(ranks), np.arange(1, ranks)[:, None]
    return builder.messages(rank, (rank + shift) % ranks, size, offset, reduces=reduces)


def expand_direct(ranks: int, size_bytes: int, _: Parameters) -> Schedule:
    """Two shots: each block to its owner, the sums from the owners to all; incast of n-1."""
    builder = ScheduleBuilder(ranks)
    rank, shift = np.arange(ranks), np.arange(1, ranks)[:, None]
    sizes = block_sizes(size_bytes, ranks)
    target = (rank + shift) % ranks
    offsets = block_offset(size_bytes, ranks, rank)
    scatter = exchange_with_all(builder, sizes[target], offsets[target], reduces=True)
    summed = builder.joins(rank)
    builder.after(summed, scatter.receives[shift - 1, (rank - shift) % ranks])
    gather = exchange_with_all(builder, sizes, offsets, reduces=False)
    builder.after(gather.sends, summed)
    return builder.build()


def direct_bytes(ranks: int, size_bytes: int, _: Parameters) -> Ints:
    """All blocks but the own, then the own to all others."""
    block = block_sizes(size_bytes, ranks)
    return size_bytes - block + (ranks - 1) * block


def expand_one_shot(ranks: int, size_bytes: int, _: Parameters) -> Schedule:
    """Send the whole buffer to everybody at once; everybody sums."""
    builder = ScheduleBuilder(ranks)
    exchange_with_all(builder, np.asarray(size_bytes), np.asarray(0), reduces=True)
    return builder.build()


def one_shot_bytes(ranks: int, size_bytes: int, _: Parameters) -> Ints:
    """Count the buffer for each of the others."""
    return np.full(ranks, size_bytes * (ranks - 1), np.int64)


ALL_REDUCE = {
    "ring": Algorithm(expand_ring, ring_bytes, "2(n-1) steps of S/n to the next rank"),
    "halving_doubling": Algorithm(
        expand_halving_doubling,
        halving_doubling_bytes,
        "2 log2(n) exchanges of S/2, S/4 ... and back; other than a power of two folds first",
    ),
    "double_binary_tree": Algorithm(
        expand_double_binary_tree,
        double_binary_tree_bytes,
        "two trees with S/2 each, pipelined in pieces of chunk_bytes",
    ),
    "direct": Algorithm(
        expand_direct, direct_bytes, "two shots: S/n to each owner, then S/n from each owner"
    ),
    "one_shot": Algorithm(expand_one_shot, one_shot_bytes, "S to each of the others at once"),
}
"""Algorithms of all-reduce by name."""

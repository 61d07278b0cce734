"""Broadcast, reduce, gather and scatter: collectives with a root.

Reduce runs the broadcast backwards. S is the whole buffer; gather and scatter move S/n per rank.
"""

import numpy as np

from traffic_profiles.collectives.algorithm import Algorithm, Parameters
from traffic_profiles.collectives.blocks import block_offset, block_sizes, pieces
from traffic_profiles.collectives.schedule import Ints, Schedule, ScheduleBuilder

__all__ = ["BROADCAST", "GATHER", "REDUCE", "SCATTER"]


def chain(ranks: int, parameters: Parameters) -> Ints:
    """Positions from the root around to the one before it."""
    return (parameters.root + np.arange(ranks)) % ranks


def chain_pieces(ranks: int, size_bytes: int, parameters: Parameters) -> tuple[Ints, Ints]:
    """Sizes and offsets of the pipeline's pieces, as columns."""
    count = pieces(size_bytes, ranks - 1, parameters.chunk_bytes)
    offset = block_offset(size_bytes, count, np.arange(count))
    return block_sizes(size_bytes, count)[:, None], offset[:, None]


def expand_broadcast_chain(ranks: int, size_bytes: int, parameters: Parameters) -> Schedule:
    """Piece by piece from rank to rank."""
    builder = ScheduleBuilder(ranks)
    order = chain(ranks, parameters)
    size, offset = chain_pieces(ranks, size_bytes, parameters)
    messages = builder.messages(order[:-1], order[1:], size, offset)
    builder.after(messages.sends[:, 1:], messages.receives[:, :-1])
    return builder.build()


def broadcast_chain_bytes(ranks: int, size_bytes: int, parameters: Parameters) -> Ints:
    """Everything once, except the end of the chain."""
    sent = np.full(ranks, size_bytes, np.int64)
    sent[chain(ranks, parameters)[-1]] = 0
    return sent


def expand_reduce_chain(ranks: int, size_bytes: int, parameters: Parameters) -> Schedule:
    """Piece by piece towards the root, each rank adding its own."""
    builder = ScheduleBuilder(ranks)
    order = chain(ranks, parameters)
    size, offset = chain_pieces(ranks, size_bytes, parameters)
    messages = builder.messages(order[1:], order[:-1], size, offset, reduces=True)
    builder.after(messages.sends[:, :-1], messages.receives[:, 1:])
    return builder.build()


def all_but_root(ranks: int, size_bytes: int, parameters: Parameters) -> Ints:
    """Everything once, except the root."""
    sent = np.full(ranks, size_bytes, np.int64)
    sent[parameters.root] = 0
    return sent


def binomial_rounds(ranks: int) -> list[tuple[Ints, Ints]]:
    """Parents and children of each round, counted from the root: 0 to 1; 0, 1 to 2, 3; ..."""
    rounds = []
    for distance in (1 << level for level in range((ranks - 1).bit_length())):
        parent = np.arange(min(distance, ranks - distance))
        rounds.append((parent, parent + distance))
    return rounds


def expand_broadcast_binomial(ranks: int, size_bytes: int, parameters: Parameters) -> Schedule:
    """ceil(log2 n) rounds, in each everybody who has the buffer sends it to one who has not."""
    builder = ScheduleBuilder(ranks)
    order = chain(ranks, parameters)
    received = sent = np.empty(0, np.int64)
    for parent, child in binomial_rounds(ranks):
        messages = builder.messages(order[parent], order[child], size_bytes, 0)
        builder.after(messages.sends[1:], received[: parent.size - 1])
        builder.after(messages.sends[: sent.size], sent[: parent.size])
        received, sent = np.concatenate([received, messages.receives]), messages.sends
    return builder.build()


def binomial_sends(ranks: int) -> Ints:
    """Transfers that each rank, counted from the root, sends in a binomial broadcast."""
    sends = np.zeros(ranks, np.int64)
    for parent, _ in binomial_rounds(ranks):
        sends[parent] += 1
    return sends


def broadcast_binomial_bytes(ranks: int, size_bytes: int, parameters: Parameters) -> Ints:
    """Count the buffer for each child."""
    return size_bytes * np.roll(binomial_sends(ranks), parameters.root)


def expand_reduce_binomial(ranks: int, size_bytes: int, parameters: Parameters) -> Schedule:
    """Run the broadcast backwards, each rank adding what its children sent."""
    builder = ScheduleBuilder(ranks)
    order = chain(ranks, parameters)
    received: list[tuple[Ints, Ints]] = []
    for parent, child in reversed(binomial_rounds(ranks)):
        messages = builder.messages(order[child], order[parent], size_bytes, 0, reduces=True)
        for owner, receives in received:
            own = np.flatnonzero(np.isin(owner, child))
            builder.after(messages.sends[owner[own] - child[0]], receives[own])
        received.append((parent, messages.receives))
    return builder.build()


def expand_gather(ranks: int, size_bytes: int, parameters: Parameters) -> Schedule:
    """Each block to the root at once; incast of n-1."""
    builder = ScheduleBuilder(ranks)
    other = chain(ranks, parameters)[1:]
    size, offset = block_sizes(size_bytes, ranks)[other], block_offset(size_bytes, ranks, other)
    builder.messages(other, parameters.root, size, offset)
    return builder.build()


def gather_bytes(ranks: int, size_bytes: int, parameters: Parameters) -> Ints:
    """Count the own block, except at the root."""
    sent = block_sizes(size_bytes, ranks)
    sent[parameters.root] = 0
    return sent


def expand_scatter(ranks: int, size_bytes: int, parameters: Parameters) -> Schedule:
    """Each block from the root at once."""
    builder = ScheduleBuilder(ranks)
    other = chain(ranks, parameters)[1:]
    size, offset = block_sizes(size_bytes, ranks)[other], block_offset(size_bytes, ranks, other)
    builder.messages(parameters.root, other, size, offset)
    return builder.build()


def scatter_bytes(ranks: int, size_bytes: int, parameters: Parameters) -> Ints:
    """Count all blocks but its own at the root."""
    sent = np.zeros(ranks, np.int64)
    sent[parameters.root] = size_bytes - block_sizes(size_bytes, ranks)[parameters.root]
    return sent


BROADCAST = {
    "chain": Algorithm(
        expand_broadcast_chain, broadcast_chain_bytes, "pieces of chunk_bytes from rank to rank"
    ),
    "binomial": Algorithm(
        expand_broadcast_binomial, broadcast_binomial_bytes, "ceil(log2 n) rounds of S"
    ),
}
"""Algorithms of broadcast by name."""
REDUCE = {
    "chain": Algorithm(
        expand_reduce_chain, all_but_root, "pieces of chunk_bytes from rank to rank to the root"
    ),
    "binomial": Algorithm(expand_reduce_binomial, all_but_root, "ceil(log2 n) rounds of S"),
}
"""Algorithms of reduce by name."""
GATHER = {"linear": Algorithm(expand_gather, gather_bytes, "S/n from each to the root at once")}
"""Algorithms of gather by name."""
SCATTER = {"linear": Algorithm(expand_scatter, scatter_bytes, "S/n from the root to each at once")}
"""Algorithms of scatter by name."""

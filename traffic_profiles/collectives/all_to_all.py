"""All-to-all: rank r sends block j of its buffer to rank j; S is a rank's full send buffer.

Uneven splits come from a matrix. Its rows with equal sums give every rank S bytes to send; rows
with different sums share the n S bytes of the group by their sums.
"""

import numpy as np

from traffic_profiles.collectives.algorithm import Algorithm, Parameters
from traffic_profiles.collectives.blocks import block_sizes, split_by_weight
from traffic_profiles.collectives.schedule import Ints, Messages, Schedule, ScheduleBuilder

__all__ = ["ALL_TO_ALL", "byte_matrix"]


def byte_matrix(ranks: int, size_bytes: int, parameters: Parameters) -> Ints:
    """Bytes from each source (row) to each destination (column): `int64[ranks, ranks]`."""
    if parameters.split_matrix is None:
        return np.broadcast_to(block_sizes(size_bytes, ranks), (ranks, ranks))
    weights = parameters.split_matrix.weights
    totals = split_by_weight(ranks * size_bytes, weights.sum(axis=1))
    return np.stack(
        [split_by_weight(int(total), row) for total, row in zip(totals, weights, strict=True)]
    )


def add_messages(builder: ScheduleBuilder, matrix: Ints) -> Messages:
    """Add all messages, `[n - 1, n]`: shift s is from r to r + s."""
    ranks = builder.ranks
    rank, shift = np.arange(ranks), np.arange(1, ranks)[:, None]
    target = (rank + shift) % ranks
    offset = np.cumsum(matrix, axis=1) - matrix
    return builder.messages(rank, target, matrix[rank, target], offset[rank, target])


def expand_linear(ranks: int, size_bytes: int, parameters: Parameters) -> Schedule:
    """Every block at once; incast of n-1."""
    builder = ScheduleBuilder(ranks)
    add_messages(builder, byte_matrix(ranks, size_bytes, parameters))
    return builder.build()


def expand_pairwise(ranks: int, size_bytes: int, parameters: Parameters) -> Schedule:
    """Step s: to r + s and from r - s; `window` steps under way, steps without bytes skipped."""
    builder = ScheduleBuilder(ranks)
    matrix = byte_matrix(ranks, size_bytes, parameters)
    messages = add_messages(builder, matrix)
    rank, shift = np.arange(ranks), np.arange(1, ranks)[:, None]
    sends = messages.sends
    receives = messages.receives[shift - 1, (rank - shift) % ranks]
    active = (matrix[rank, (rank + shift) % ranks] + matrix[(rank - shift) % ranks, rank]) > 0
    step, owner = (axis.T[active.T] for axis in np.broadcast_arrays(shift - 1, rank))
    later = np.flatnonzero(owner[parameters.window :] == owner[: -parameters.window or None])
    before, now = later, later + parameters.window
    for dependency in (sends, receives):
        builder.after(sends[step[now], owner[now]], dependency[step[before], owner[before]])
    return builder.build()


def sent_bytes(ranks: int, size_bytes: int, parameters: Parameters) -> Ints:
    """Row sums without the diagonal."""
    matrix = byte_matrix(ranks, size_bytes, parameters)
    sent: Ints = matrix.sum(axis=1) - np.diagonal(matrix)
    return sent


ALL_TO_ALL = {
    "linear": Algorithm(expand_linear, sent_bytes, "S/n to each of the others at once"),
    "pairwise": Algorithm(
        expand_pairwise,
        sent_bytes,
        "step s to rank r+s and from r-s, window steps under way",
        forwards=False,
    ),
}
"""Algorithms of all-to-all by name."""

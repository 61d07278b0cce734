"""How a buffer is cut: every byte in exactly one block, remainders exact."""

import math

import numpy as np
import numpy.typing as npt

from traffic_profiles.collectives.schedule import Ints

__all__ = ["block_offset", "block_sizes", "pieces", "split_by_weight"]

MOST_PIECES = 256
"""Default bound on the pieces of one pipelined transfer, so that programs stay small."""
LARGEST_PIECE_BYTES, SMALLEST_PIECE_BYTES = 512 * 1024, 32 * 1024
"""Default pieces. *Source*: NCCL, a buffer of 4 MiB in 8 steps; trees halve it down to 32 KiB."""
PIECES_PER_HOP = 4
"""A pipeline is filled well when it has so many pieces for each hop."""


def block_offset(size_bytes: int, blocks: int, index: npt.ArrayLike) -> Ints:
    """First byte of block `index` (0..blocks); the first `size % blocks` blocks hold one more."""
    quotient, remainder = divmod(size_bytes, blocks)
    number = np.asarray(index, np.int64)
    return number * quotient + np.minimum(number, remainder)


def block_sizes(size_bytes: int, blocks: int) -> Ints:
    """Bytes of each of the blocks: `int64[blocks]`, their sum is `size_bytes`."""
    return np.diff(block_offset(size_bytes, blocks, np.arange(blocks + 1)))


def pieces(size_bytes: int, hops: int, piece_bytes: int | None, *, shrink: bool = False) -> int:
    """Count the pieces of a transfer that is pipelined over `hops`.

    By default pieces have 512 KiB; `shrink` halves them while they are too few for the hops and
    above 32 KiB. There are at most 256 of them or four for each hop.
    """
    if piece_bytes is not None:
        return max(1, math.ceil(size_bytes / piece_bytes))
    enough = PIECES_PER_HOP * hops
    piece = LARGEST_PIECE_BYTES
    while shrink and size_bytes < enough * piece and piece > SMALLEST_PIECE_BYTES:
        piece //= 2
    return min(max(1, math.ceil(size_bytes / piece)), max(MOST_PIECES, enough))


def split_by_weight(size_bytes: int, weights: npt.NDArray[np.float64]) -> Ints:
    """Cut a buffer by relative weights: exact in sum, each part within a byte of its share."""
    bounds = np.concatenate([[0.0], np.cumsum(weights)])
    if bounds[-1] == 0:
        return np.zeros(len(weights), np.int64)
    cuts = np.rint(bounds / bounds[-1] * size_bytes).astype(np.int64)
    cuts[bounds == bounds[-1]] = size_bytes
    return np.asarray(np.diff(cuts), np.int64)

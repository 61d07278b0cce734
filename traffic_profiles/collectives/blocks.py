"""How a buffer is cut: every byte in exactly one block, remainders exact."""

import math

import numpy as np
import numpy.typing as npt

from traffic_profiles.collectives.schedule import Ints

__all__ = ["block_offset", "block_sizes", "pieces", "split_by_weight"]

MOST_PIECES = 64
"""Default bound on the pieces of one pipelined transfer, so that programs stay small."""
STEP_BYTES = 512 * 1024
"""Default piece. Source: NCCL, buffer of 4 MiB in 8 steps."""


def block_offset(size_bytes: int, blocks: int, index: npt.ArrayLike) -> Ints:
    """First byte of block `index` (0..blocks); the first `size % blocks` blocks hold one more."""
    quotient, remainder = divmod(size_bytes, blocks)
    number = np.asarray(index, np.int64)
    return number * quotient + np.minimum(number, remainder)


def block_sizes(size_bytes: int, blocks: int) -> Ints:
    """Bytes of each of the blocks: `int64[blocks]`, their sum is `size_bytes`."""
    return np.diff(block_offset(size_bytes, blocks, np.arange(blocks + 1)))


def pieces(size_bytes: int, piece_bytes: int | None) -> int:
    """Count the pieces of a pipelined transfer; by default 512 KiB each and at most 64."""
    if piece_bytes is None:
        return min(MOST_PIECES, max(1, math.ceil(size_bytes / STEP_BYTES)))
    return max(1, math.ceil(size_bytes / piece_bytes))


def split_by_weight(size_bytes: int, weights: npt.NDArray[np.float64]) -> Ints:
    """Cut a buffer by relative weights: exact in sum, each part within a byte of its share."""
    bounds = np.concatenate([[0.0], np.cumsum(weights)])
    if bounds[-1] == 0:
        return np.zeros(len(weights), np.int64)
    cuts = np.rint(bounds / bounds[-1] * size_bytes).astype(np.int64)
    cuts[bounds == bounds[-1]] = size_bytes
    return np.asarray(np.diff(cuts), np.int64)

"""Classes that keep labels few: message sizes and group sizes in powers."""

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

__all__ = ["SIZE_CLASSES", "rank_class", "size_class", "size_class_indices"]

_SIZE_LIMITS = np.array([4 << 10, 64 << 10, 1 << 20, 16 << 20, 256 << 20, 4 << 30], np.uint64)
SIZE_CLASSES: Sequence[str] = (
    "up to 4 KiB", "4 KiB to 64 KiB", "64 KiB to 1 MiB", "1 MiB to 16 MiB", "16 MiB to 256 MiB",
    "256 MiB to 4 GiB", "over 4 GiB",
)  # fmt: skip
"""Label values for sizes; the upper limit belongs to the class."""


def size_class_indices(size_bytes: NDArray[np.uint64]) -> NDArray[np.int64]:
    """Index into `SIZE_CLASSES` of each size."""
    return np.searchsorted(_SIZE_LIMITS, size_bytes, side="left")


def size_class(size_bytes: int) -> str:
    """Label value for one size."""
    return SIZE_CLASSES[int(size_class_indices(np.array([size_bytes], np.uint64))[0])]


def rank_class(ranks: int) -> str:
    """Label value for the size of a group: `1`, `2`, `3-4`, `5-8`, `9-16`, ..."""
    if ranks <= 2:
        return str(ranks)
    upper = 1 << (ranks - 1).bit_length()
    return f"{upper // 2 + 1}-{upper}"

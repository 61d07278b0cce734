"""What an algorithm is: a function to a schedule, and the bytes that it must send."""

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from traffic_profiles.collectives.schedule import Ints, Schedule
from traffic_profiles.collectives.slicing import Slicing

__all__ = ["Algorithm", "Parameters", "SplitMatrix"]


@dataclass(frozen=True, slots=True, eq=False)
class SplitMatrix:
    """Shares of an uneven all-to-all; compared by identity."""

    weights: npt.NDArray[np.float64]
    """`float64[n, n]`, row = source position, column = destination, not negative."""


@dataclass(frozen=True, slots=True)
class Parameters:
    """What an algorithm may be told; each uses what concerns it."""

    window: int = 8
    """Steps of a pairwise all-to-all that are under way at a rank. Source: NCCL batches up to 8
    point-to-point transfers in one piece of work."""
    chunk_bytes: int | None = None
    """Bytes of a pipelined piece; None is chosen by size, see `blocks.pieces`."""
    root: int = 0
    """Position of the root of broadcast, reduce, gather and scatter."""
    split_matrix: SplitMatrix | None = None
    """Shares of an all-to-all; None is even."""
    slicing: Slicing | None = None
    """How the messages are cut, of any algorithm; None sends them whole."""


@dataclass(frozen=True, slots=True)
class Algorithm:
    """One way to carry a collective."""

    expand: Callable[[int, int, Parameters], Schedule]
    """Messages for (ranks, size_bytes, parameters)."""
    sent_bytes: Callable[[int, int, Parameters], Ints]
    """Bytes that each position sends, by formula: `int64[ranks]`."""
    summary: str
    """One sentence for a listing."""
    forwards: bool = True
    """What a message waits for are the bytes that it carries; otherwise, its turn."""

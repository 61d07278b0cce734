"""Which algorithm carries a collective: the user's rules, then what NCCL would pick.

Knows collectives by kind, size and group; knows nothing of their expansion.
"""

from dataclasses import dataclass
from pathlib import Path

__all__ = ["AlgorithmRule"]


@dataclass(frozen=True, slots=True)
class AlgorithmRule:
    """One rule of the algorithm table; the first one that matches an instance decides."""

    collective: str
    """Kind of collective, for example `all_reduce`; a glob."""
    algorithm: str
    """Algorithm of that kind, for example `ring`."""
    min_size_bytes: int = 0
    """Matches sizes from here; size as in nccl-tests, after scaling."""
    max_size_bytes: int | None = None
    """Matches sizes up to and including this."""
    min_ranks: int = 1
    """Matches groups of at least so many ranks."""
    max_ranks: int | None = None
    """Matches groups of at most so many ranks."""
    group: str = "*"
    """Glob on the process group's name."""
    node: str = "*"
    """Glob on the name of the trace node on the group's first rank."""
    window: int | None = None
    """`pairwise` all-to-all: sends that may be outstanding at a rank."""
    chunk_bytes: int | None = None
    """Pipelined algorithms: bytes of one chunk."""
    split_matrix_file: Path | None = None
    """All-to-all: JSON or CSV matrix, row = source, column = destination, relative weights."""

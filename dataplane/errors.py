"""The errors of rankwire, in one tree.

::

    RankwireError
    ├── InputError      what the user gave is wrong: exit status 2, nothing was started
    └── RunError        a run, prediction or sweep failed or a gate did not hold: exit status 1

Both carry facts as attributes; the command prints them. Nothing here knows where they are caught.
Protocol events (NAK, CNP, time-out, drop) are never errors.
"""

from collections.abc import Sequence
from dataclasses import dataclass

__all__ = ["InputError", "Problem", "RankwireError", "RunError"]


@dataclass(frozen=True, slots=True)
class Problem:
    """One thing that is wrong: where it stands, what it is, what would be right."""

    source: str
    """File, directory, option or address that holds the problem."""
    what: str
    """What is wrong, with the offending values."""
    remedy: str
    """What would be right."""
    place: str = ""
    """Place within the source: a byte offset, a key path, a rank and node id."""

    def __str__(self) -> str:
        """One line: source, place, problem, remedy."""
        where = f"{self.source}: {self.place}" if self.place else self.source
        return f"{where}: {self.what}; {self.remedy}"


class RankwireError(Exception):
    """Base of every error that the command reports without a traceback."""

    exit_status = 1


class InputError(RankwireError):
    """What the user gave is wrong; one `Problem` for each thing found."""

    exit_status = 2

    def __init__(self, *problems: Problem) -> None:
        super().__init__("\n".join(str(problem) for problem in problems))
        self.problems: Sequence[Problem] = problems


class RunError(RankwireError):
    """A run failed after its start; what there is of records is kept."""

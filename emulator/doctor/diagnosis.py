"""One finding of the doctor."""

from dataclasses import dataclass
from enum import Enum

__all__ = ["Diagnosis", "Level"]


class Level(Enum):
    """How bad it is."""

    GOOD = 0
    """The rule holds."""
    WARNING = 1
    """Results may surprise."""
    WRONG = 2
    """The lab will not do what it is for."""


@dataclass(frozen=True, slots=True)
class Diagnosis:
    """What a rule found."""

    level: Level
    rule: str
    """Short name of the rule."""
    finding: str
    """What is so, with numbers."""
    remedy: str = ""
    """What would be right; empty when the rule holds."""

"""Which class of data packets carries a message: the first rule that matches, else class 0.

Knows collectives by kind, size and group; knows no tags, queues or congestion control.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from fnmatch import fnmatchcase

__all__ = ["TrafficClassRule", "class_of"]


@dataclass(frozen=True, slots=True)
class TrafficClassRule:
    """What one further class carries."""

    name: str
    """Name of the class."""
    collective: str = "*"
    """Kind of collective, for example `all_to_all`; a glob."""
    group: str = "*"
    """Glob on the process group's name."""
    node: str = "*"
    """Glob on the name of the trace node on the group's first rank."""
    min_size_bytes: int = 0
    """Matches sizes from here; size as in nccl-tests, after scaling."""
    max_size_bytes: int | None = None
    """Matches sizes up to and including this."""

    def matches(self, kind: str, size_bytes: int, group: str, node: str) -> bool:
        """Tell whether the class carries an instance."""
        return (
            fnmatchcase(kind, self.collective)
            and self.min_size_bytes <= size_bytes
            and (self.max_size_bytes is None or size_bytes <= self.max_size_bytes)
            and fnmatchcase(group, self.group)
            and fnmatchcase(node, self.node)
        )


def class_of(
    rules: Sequence[TrafficClassRule], kind: str, size_bytes: int, group: str, node: str
) -> int:
    """Number of the class of an instance: 1 for the first rule, 0 if none matches."""
    for number, rule in enumerate(rules, start=1):
        if rule.matches(kind, size_bytes, group, node):
            return number
    return 0

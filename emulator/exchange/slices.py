"""Python's slice notation as InfraGraph writes it: `0`, `-1`, `0:2`, `::2`, nothing for all."""

import re

__all__ = ["indices"]


def indices(text: str, count: int) -> list[int] | None:
    """The indices below `count` that a slice or number means; `None` if it is wrong or empty."""
    parts = [part.strip() for part in text.split(":")]
    if len(parts) > 3 or any(not re.fullmatch(r"(-?[0-9]{1,9})?", part) for part in parts):
        return None
    numbers = [int(part) if part else None for part in parts]
    if len(parts) == 1 and numbers[0] is not None:
        index = numbers[0] + (count if numbers[0] < 0 else 0)
        return [index] if 0 <= index < count else None
    if len(numbers) == 3 and numbers[2] == 0:
        return None
    chosen = list(range(count)[slice(*numbers)]) if len(parts) > 1 else list(range(count))
    return chosen or None

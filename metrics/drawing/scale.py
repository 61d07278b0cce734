"""Colours of utilisation: grey when idle, blue, green, amber, red at the end of the scale."""

from collections.abc import Sequence
from itertools import pairwise

__all__ = ["STEPS", "STOPS", "colour_at", "scale_end"]

STEPS = 25
"""Colours that a drawing tells apart."""
STOPS: Sequence[tuple[float, tuple[int, int, int]]] = (
    (0.0, (160, 172, 184)),
    (0.04, (120, 170, 215)),
    (0.28, (36, 112, 190)),
    (0.5, (38, 158, 128)),
    (0.7, (222, 172, 44)),
    (0.88, (219, 94, 38)),
    (1.0, (178, 22, 52)),
)
"""Share of the scale, and red, green and blue, 0 to 255, of a line that carries it."""


def scale_end(largest: float) -> float:
    """Where a scale ends that shows shares up to the largest: at line rate, or well below it."""
    return next((end for end in (0.02, 0.05, 0.1, 0.2, 0.5) if largest <= end), 1.0)


def colour_at(ratio: float) -> str:
    """The colour of a share of the scale, 0 to 1, as one of so many steps."""
    clipped = round(min(1.0, max(0.0, ratio)) * STEPS) / STEPS
    for (low, first), (high, second) in pairwise(STOPS):
        if clipped <= high:
            part = (clipped - low) / (high - low)
            mixed = [round(a + (b - a) * part) for a, b in zip(first, second, strict=True)]
            return "#" + "".join(f"{value:02x}" for value in mixed)
    return "#" + "".join(f"{value:02x}" for value in STOPS[-1][1])

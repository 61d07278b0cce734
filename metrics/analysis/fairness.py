"""How evenly a load is spread: Jain's index, the largest share over the mean, the entropy."""

from typing import Any

import numpy as np
from numpy.typing import NDArray

__all__ = ["jain_index", "max_over_mean", "normalised_entropy", "variation_ratio"]


def jain_index(loads: NDArray[Any]) -> float | None:
    """Jain's fairness index (sum x)^2 / (n sum x^2), from 1/n to 1; None without any load.

    *Source*: Jain, Chiu, Hawe, DEC-TR-301 (1984).
    """
    values = np.asarray(loads, dtype=np.float64)
    squares = float((values * values).sum())
    return float(values.sum() ** 2 / (len(values) * squares)) if squares > 0 else None


def max_over_mean(loads: NDArray[Any]) -> float | None:
    """Largest load over the mean of all; 1 is even; None without any load."""
    values = np.asarray(loads, dtype=np.float64)
    mean = float(values.mean()) if len(values) else 0.0
    return float(values.max()) / mean if mean > 0 else None


def normalised_entropy(loads: NDArray[Any]) -> float | None:
    """Entropy of the shares over log2 n: 1 is even, 0 is everything in one place."""
    values = np.asarray(loads, dtype=np.float64)
    total = float(values.sum())
    if total <= 0 or len(values) < 2:
        return None
    shares = values[values > 0] / total
    return float(-(shares * np.log2(shares)).sum() / np.log2(len(values)))


def variation_ratio(samples: NDArray[Any]) -> float | None:
    """Standard deviation over mean (CV); None with fewer than two samples or a mean of zero."""
    values = np.asarray(samples, dtype=np.float64)
    if len(values) < 2 or values.mean() == 0:
        return None
    return float(values.std(ddof=1) / values.mean())

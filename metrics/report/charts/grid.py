"""Time series on a common grid of at most so many columns."""

from dataclasses import dataclass
from typing import Any

import numpy as np
import polars as pl
from numpy.typing import NDArray

__all__ = ["TimeGrid", "time_grid"]


@dataclass(frozen=True, slots=True)
class TimeGrid:
    """Equal bins of emulated time from 0."""

    width_ns: int
    bins: int

    @property
    def middles_ns(self) -> NDArray[np.float64]:
        """Middle of every bin."""
        return np.asarray((np.arange(self.bins) + 0.5) * self.width_ns, dtype=np.float64)

    def index(self, time_ns: NDArray[Any], interval_ns: NDArray[Any]) -> NDArray[np.int64]:
        """Bin of samples that end at `time_ns`, by the middle of their interval."""
        middle = np.asarray(time_ns, dtype=np.float64) - np.asarray(interval_ns) / 2
        return np.clip(middle // self.width_ns, 0, self.bins - 1).astype(np.int64)

    def sums(
        self, rows: NDArray[np.int64], count: int, columns: NDArray[np.int64], values: NDArray[Any]
    ) -> NDArray[np.float64]:
        """float64[count, bins]: sum of the values that fall on each row and bin."""
        flat = np.bincount(rows * self.bins + columns, values, minlength=count * self.bins)
        return np.asarray(flat.reshape(count, self.bins), dtype=np.float64)

    def maxima(
        self, rows: NDArray[np.int64], count: int, columns: NDArray[np.int64], values: NDArray[Any]
    ) -> NDArray[np.float64]:
        """float64[count, bins]: largest value on each row and bin, 0 where there is none."""
        flat = np.zeros(count * self.bins)
        np.maximum.at(flat, rows * self.bins + columns, np.asarray(values, dtype=np.float64))
        return flat.reshape(count, self.bins)


def time_grid(series: pl.DataFrame, limit: int) -> TimeGrid:
    """A grid over a series with `time_ns` and `interval_ns`: whole sample intervals per bin."""
    interval = max(int(series["interval_ns"].max() or 1), 1)  # type: ignore[arg-type]
    end = int(series["time_ns"].max() or interval)  # type: ignore[arg-type]
    samples = -(-end // interval)
    per_bin = max(-(-samples // limit), 1)
    return TimeGrid(interval * per_bin, max(-(-samples // per_bin), 1))

"""What a running job has done so far, accumulated from the engine's snapshots and completions.

Knows the programs, the fabric's names and the engine's columns; knows no exposition format.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import polars as pl
from numpy.typing import NDArray

from metrics.analysis.bandwidth import PREAMBLE_AND_GAP_BYTES
from metrics.classes import SIZE_CLASSES, rank_class, size_class, size_class_indices
from metrics.records.operations import NONE_U32, SEND, ProgramLike

__all__ = ["BUCKETS_SECONDS", "Classified", "LiveJob"]

BUCKETS_SECONDS: Sequence[float] = tuple(
    round(step * 10.0**power, 9) for power in range(-6, 2) for step in (1.0, 2.5, 5.0)
)
"""Upper limits of the histograms, 1 us to 50 s; infinity comes after."""


@dataclass
class Classified:
    """Completion times pooled by class: bucket counts, sums and every sample."""

    labels: Sequence[tuple[str, ...]]
    """Label values of each class."""

    def __post_init__(self) -> None:
        """Start with nothing."""
        self.buckets = np.zeros((len(self.labels), len(BUCKETS_SECONDS) + 1), dtype=np.int64)
        self.sums = np.zeros(len(self.labels))
        self._parts: list[list[NDArray[np.float64]]] = [[] for _ in self.labels]

    def add(self, classes: NDArray[np.int64], seconds: NDArray[np.float64]) -> None:
        """Add samples with the index of their class."""
        bucket = np.searchsorted(np.asarray(BUCKETS_SECONDS), seconds, side="left")
        np.add.at(self.buckets, (classes, bucket), 1)
        np.add.at(self.sums, classes, seconds)
        for number in np.unique(classes):
            self._parts[int(number)].append(seconds[classes == number])

    def ordered(self, number: int) -> NDArray[np.float64]:
        """All samples of one class, ascending."""
        parts = self._parts[number]
        if not parts:
            return np.empty(0)
        whole = np.sort(np.concatenate(parts), kind="stable")
        self._parts[number] = [whole]
        return whole


class LiveJob:
    """The state of a running job; `update` takes what the engine says, in order."""

    def __init__(
        self,
        programs: Sequence[ProgramLike],
        instances: pl.DataFrame,
        line_rates_bps: NDArray[np.float64],
    ) -> None:
        ordered = sorted(programs, key=lambda program: program.rank)
        self._first = np.zeros(max((p.rank for p in ordered), default=-1) + 1, dtype=np.int64)
        lengths = np.array([len(program.kind) for program in ordered], dtype=np.int64)
        self._first[[program.rank for program in ordered]] = np.cumsum(lengths) - lengths
        self._instance = _joined([p.instance for p in ordered], np.uint32)
        self._is_send = _joined([p.kind for p in ordered], np.uint8) == SEND
        self._size = _joined([p.size_bytes for p in ordered], np.uint64)
        self._line_rates_bps = line_rates_bps
        self._track_instances(instances)
        self.flows = Classified([(name,) for name in SIZE_CLASSES])
        self.snapshot: Mapping[str, Any] = {}
        self.utilisation = np.zeros(len(line_rates_bps))
        self._measured_ps = 0
        self.watermarks: NDArray[np.uint64] = np.zeros(0, np.uint64)

    def update(self, snapshot: Mapping[str, Any], completed: Mapping[str, Any]) -> None:
        """Take the totals so far, and the operations completed since the last call.

        A snapshot may come without its tables (`links`, `queues`, `nics`), where they are too large
        to be sent on the way: the last ones stay.
        """
        self._complete(completed)
        if "links" in snapshot:
            self._measure_links(snapshot)
        if "queues" in snapshot:
            self._raise_watermarks(snapshot)
        self.snapshot = {**self.snapshot, **snapshot}

    def _track_instances(self, instances: pl.DataFrame) -> None:
        """Number the classes of the instances, and count what each instance waits for."""
        facts = zip(
            instances["kind"], instances["ranks"].list.len(), instances["size_bytes"], strict=True
        )
        keys = [(kind, rank_class(ranks), size_class(size)) for kind, ranks, size in facts]
        labels = sorted(set(keys))
        number = {key: index for index, key in enumerate(labels)}
        last = int(instances["instance"].max() or 0) if len(instances) else -1  # type: ignore[arg-type]
        self._class = np.zeros(last + 1, dtype=np.int64)
        self._class[instances["instance"].to_numpy()] = [number[key] for key in keys]
        mine = self._instance[self._instance != NONE_U32]
        self._missing = np.bincount(mine, minlength=last + 1)
        self._start_ps = np.full(last + 1, np.iinfo(np.int64).max, dtype=np.int64)
        self._end_ps = np.zeros(last + 1, dtype=np.int64)
        self.collectives = Classified(labels)

    def _complete(self, completed: Mapping[str, Any]) -> None:
        """Account completed operations to their flows and instances."""
        rank = np.asarray(completed["rank"], dtype=np.int64)
        position = self._first[rank] + np.asarray(completed["op"], dtype=np.int64)
        start = np.asarray(completed["start_ps"]).astype(np.int64)
        end = np.asarray(completed["end_ps"]).astype(np.int64)
        sends = self._is_send[position]
        classes = size_class_indices(self._size[position[sends]])
        self.flows.add(classes, (end[sends] - start[sends]) / 1e12)
        instance = self._instance[position]
        inside = instance != NONE_U32
        self._advance(instance[inside].astype(np.int64), start[inside], end[inside])

    def _advance(
        self, instance: NDArray[np.int64], start: NDArray[np.int64], end: NDArray[np.int64]
    ) -> None:
        """Move instances on; those that wait for nothing more are complete."""
        np.minimum.at(self._start_ps, instance, start)
        np.maximum.at(self._end_ps, instance, end)
        np.subtract.at(self._missing, instance, 1)
        touched = np.unique(instance)
        ready = touched[self._missing[touched] == 0]
        elapsed = (self._end_ps[ready] - self._start_ps[ready]) / 1e12
        self.collectives.add(self._class[ready], elapsed)

    def _measure_links(self, snapshot: Mapping[str, Any]) -> None:
        """Utilisation since the last snapshot; kept when no emulated time has passed."""
        passed_ps = int(snapshot["now_ps"]) - self._measured_ps
        if passed_ps <= 0:
            return
        bits = _wire_bits(snapshot) - _wire_bits(self.snapshot)
        self.utilisation = bits / (self._line_rates_bps * passed_ps / 1e12)
        self._measured_ps = int(snapshot["now_ps"])

    def _raise_watermarks(self, snapshot: Mapping[str, Any]) -> None:
        """Keep the largest depth of every queue, whether or not the engine resets its own."""
        deepest = np.asarray(snapshot["queues"]["max_depth_bytes"], dtype=np.uint64)
        known = np.zeros(len(deepest), np.uint64)
        known[: len(self.watermarks)] = self.watermarks
        self.watermarks = np.maximum(known, deepest)


def _joined(parts: Sequence[NDArray[Any]], dtype: Any) -> NDArray[Any]:
    """One column of all programs."""
    return np.concatenate(parts) if parts else np.empty(0, dtype=dtype)


def _wire_bits(snapshot: Mapping[str, Any]) -> NDArray[np.float64] | float:
    """Bits on each link direction so far, preambles and gaps included."""
    if "links" not in snapshot:
        return 0.0
    links = snapshot["links"]
    sent = np.asarray(links["tx_bytes"], dtype=np.float64)
    between = PREAMBLE_AND_GAP_BYTES * np.asarray(links["tx_packets"], dtype=np.float64)
    return (sent + between) * 8.0

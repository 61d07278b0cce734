"""Order that a trace does not write down: streams, communicators, and idle time between CPU rows.

Every added edge goes forward in the rank's topological order, so none can close a cycle.
"""

import numpy as np
import numpy.typing as npt

from traffic_profiles.chakra.table import TraceTable
from traffic_profiles.graph import Edges, Rows
from traffic_profiles.workload import Action

__all__ = ["communicator_order", "idle_before_us", "stream_order"]


def stream_order(table: TraceTable, order: npt.NDArray[np.uint32]) -> Edges:
    """Chain the device rows of each stream.

    Converters leave every device kernel a leaf; on a GPU a stream runs one kernel after the
    other, communication included. Rows without a stream are left alone.
    """
    rows = order.astype(np.int64)
    on_stream = (table.is_cpu_op[rows] == 0) & (table.stream[rows] >= 0)
    rows = rows[on_stream]
    return chain(rows, table.stream[rows])


def communicator_order(
    order: npt.NDArray[np.uint32],
    action: npt.NDArray[np.uint8],
    group: npt.NDArray[np.int64],
) -> Edges:
    """Chain the collectives of each group on one rank, as a communicator runs them.

    `group` is a number for each row. *Source*: NCCL user guide, "Concurrency and Ordering".
    """
    rows = order.astype(np.int64)
    rows = rows[action[rows] == Action.COLLECTIVE]
    return chain(rows, group[rows])


def chain(rows: Rows, keys: npt.NDArray[np.int64]) -> Edges:
    """Edges from each row to the next one with the same key, in the order given."""
    by_key = np.argsort(keys, kind="stable")
    rows, keys = rows[by_key], keys[by_key]
    same = keys[1:] == keys[:-1]
    return Edges(rows[:-1][same], rows[1:][same])


def idle_before_us(table: TraceTable) -> npt.NDArray[np.int64] | None:
    """Idle time before each CPU row in microseconds, `int64[n]`; None if no CPU row has a time.

    The duration of a CPU row is its own time without its children's, so on one thread the time
    that had passed before a row starts, less all durations of rows that started earlier, is time
    in which the thread did nothing that the trace knows (a lower bound: part of an enclosing row
    may still follow). Waiting for the device counts as idle, since no row stands for it.
    """
    idle = np.zeros(len(table), np.int64)
    on_cpu = table.is_cpu_op == 1
    if on_cpu.any() and not (table.ts_us[on_cpu] >= 0).any():
        return None
    on_cpu &= table.ts_us >= 0
    for thread in np.unique(table.tid[on_cpu]):
        rows = np.flatnonzero(on_cpu & (table.tid == thread))
        rows = rows[np.argsort(table.ts_us[rows], kind="stable")]
        idle[rows] = _idle_on_thread(table.ts_us[rows], table.duration_us[rows].astype(np.int64))
    return idle


def _idle_on_thread(
    start_us: npt.NDArray[np.int64], duration_us: npt.NDArray[np.int64]
) -> npt.NDArray[np.int64]:
    busy_before = np.concatenate([[0], np.cumsum(duration_us)[:-1]])
    unexplained = start_us - start_us[0] - busy_before
    total = np.maximum.accumulate(np.maximum(unexplained, 0))
    return np.diff(total, prepend=0)

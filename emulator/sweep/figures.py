"""The figures of one run by which a sweep ranks: computed from its records, nothing else."""

import difflib
from collections.abc import Mapping

import numpy as np
import polars as pl
from numpy.typing import NDArray

from emulator.sweep.loads import load_figures
from metrics.analysis.real_network import is_real_network, network_totals
from metrics.fluid import is_fluid
from metrics.records import RunRecords

__all__ = ["HIGHER_IS_BETTER", "figure_problem", "figures_of", "quantile_of"]

_STATISTICS: Mapping[str, float] = {"p50_ns": 0.5, "p95_ns": 0.95, "p99_ns": 0.99, "max_ns": 1.0}
_MEDIANS = ("algbw_GBps", "busbw_GBps", "ideal_ratio")
_SPREADS = ("variation", "straggler_ratio")
_LOADS = (
    "link_utilisation_ratio", "link_idle_ratio", "link_max_over_mean", "ecmp_max_over_mean",
)  # fmt: skip
_KINDS = (
    "all", "all_reduce", "reduce_scatter", "all_gather", "all_to_all", "broadcast", "reduce",
    "gather", "scatter", "barrier", "send_recv", "flows",
)  # fmt: skip
_TOTALS = (
    "emulated_ns",
    "marked_packets",
    "cnps",
    "retransmitted_packets",
    "dropped_packets",
    "pause_frames",
    "paused_ns",
    "max_queue_bytes",
    *_LOADS,
)

HIGHER_IS_BETTER = frozenset(_MEDIANS)
"""Last parts of figures of which more is better; of all others, less is."""


def figure_problem(name: str) -> tuple[str, str] | None:
    """What is wrong with the name of a figure, and what would be right; `None` if nothing is."""
    known = [*_TOTALS, *(f"{kind}.{part}" for kind in _KINDS for part in _parts(kind))]
    if name in known:
        return None
    near = difflib.get_close_matches(name, known, n=1, cutoff=0.5)
    remedy = f"did you mean {near[0]}?" if near else "write KIND.FIGURE, for example all.p99_ns"
    return f"is {name}, which is no figure", remedy


def quantile_of(name: str) -> float | None:
    """The quantile that a figure is, 0 to 1; `None` if it is none."""
    part = name.rpartition(".")[2]
    return 0.99 if part == "slowdown_p99" else _STATISTICS.get(part)


def figures_of(records: RunRecords) -> dict[str, float]:
    """Every figure of a run; a prediction by flows has none of packets and queues.

    A run in a real network has those of queues that the kernel counted.

    Times are ns; quantiles are by nearest rank, so that with fewer than 100 samples the p99 is
    the largest one (`KIND.count` tells).
    """
    figures = _collective_figures(records.collectives, records.flows)
    figures |= _flow_figures(records.flows)
    figures["emulated_ns"] = float(records.run["emulated_ns"])
    if not is_fluid(records.run):
        figures |= _packet_figures(records)
    return figures | load_figures(records)


def _packet_figures(records: RunRecords) -> dict[str, float]:
    """What happened to packets."""
    columns = ("marked_packets", "cnps", "retransmitted_packets")
    figures = {column: float(records.flows[column].sum()) for column in columns}
    if is_real_network(records.run):
        dropped = network_totals(records.run)["dropped_packets"]
        return figures if dropped is None else figures | {"dropped_packets": float(dropped)}
    queues = records.queues
    figures["dropped_packets"] = float(queues["dropped_packets"].sum())
    figures["pause_frames"] = float(queues["pause_frames_sent"].sum())
    if "paused_ns" in queues.columns:
        figures["paused_ns"] = float(queues["paused_ns"].sum())
    deepest = queues["max_depth_bytes"].max()
    figures["max_queue_bytes"] = float(deepest) if isinstance(deepest, int | float) else 0.0
    return figures


def _parts(kind: str) -> list[str]:
    parts = [*_STATISTICS, "mean_ns", "count"]
    return [*parts, "slowdown_p99"] if kind == "flows" else [*parts, *_MEDIANS, *_SPREADS]


def _collective_figures(collectives: pl.DataFrame, flows: pl.DataFrame) -> dict[str, float]:
    complete = collectives.filter(pl.col("complete")).with_columns(pl.col("kind").cast(pl.String))
    figures = _of_kind("all", complete, flows)
    for part in complete.partition_by("kind"):
        figures |= _of_kind(part["kind"][0], part, flows)
    return figures


def _of_kind(kind: str, frame: pl.DataFrame, flows: pl.DataFrame) -> dict[str, float]:
    figures = _times(kind, frame["completion_time_ns"].to_numpy())
    figures |= _spreads(kind, frame, flows)
    for column in _MEDIANS:
        median = frame[column].drop_nulls().median()
        if isinstance(median, int | float):
            figures[f"{kind}.{column}"] = float(median)
    return figures


def _spreads(kind: str, frame: pl.DataFrame, flows: pl.DataFrame) -> dict[str, float]:
    """How much the collectives' times vary, and how far their slowest message lags behind."""
    figures = {}
    times_ns = frame["completion_time_ns"].to_numpy()
    if len(times_ns) and times_ns.mean() > 0:
        figures[f"{kind}.variation"] = float(times_ns.std() / times_ns.mean())
    messages = flows.join(frame.select("instance", "iteration"), on=["instance", "iteration"])
    ordered = np.sort(messages["completion_time_ns"].drop_nulls().to_numpy())
    if len(ordered) and _nearest_rank(ordered, 0.5) > 0:
        figures[f"{kind}.straggler_ratio"] = float(ordered[-1]) / _nearest_rank(ordered, 0.5)
    return figures


def _flow_figures(flows: pl.DataFrame) -> dict[str, float]:
    complete = flows.filter(pl.col("completion_time_ns").is_not_null())
    figures = _times("flows", complete["completion_time_ns"].to_numpy())
    slowdown = complete["slowdown"].drop_nulls().to_numpy()
    if len(slowdown):
        figures["flows.slowdown_p99"] = _nearest_rank(np.sort(slowdown), 0.99)
    return figures


def _times(kind: str, times_ns: NDArray[np.float64]) -> dict[str, float]:
    figures = {f"{kind}.count": float(len(times_ns))}
    if len(times_ns):
        ordered = np.sort(times_ns)
        figures |= {
            f"{kind}.{name}": _nearest_rank(ordered, share) for name, share in _STATISTICS.items()
        }
        figures[f"{kind}.mean_ns"] = float(ordered.mean())
    return figures


def _nearest_rank(ordered: NDArray[np.float64], share: float) -> float:
    rank = int(np.ceil(round(share * len(ordered), 9)))
    return float(ordered[max(rank, 1) - 1])

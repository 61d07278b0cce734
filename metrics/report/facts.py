"""What stands at the top of the report: banners, headline figures, facts of the run."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import polars as pl

from metrics.analysis.quantiles import distribution
from metrics.analysis.real_network import is_real_network, network_totals
from metrics.fluid import NOT_MODELLED, fluid_label, is_fluid
from metrics.presentation import (
    MISSING,
    count_text,
    duration_text,
    rate_text,
    share_text,
)
from metrics.records import RunRecords

__all__ = ["Banner", "Tile", "banners", "flattened", "headline", "run_facts"]


@dataclass(frozen=True, slots=True)
class Banner:
    """One line that nobody may overlook; `level` is `error` or `caution`."""

    level: str
    text: str


@dataclass(frozen=True, slots=True)
class Tile:
    """One headline figure."""

    title: str
    value: str
    detail: str = ""
    alarming: bool = False


def banners(run: Mapping[str, Any]) -> list[Banner]:
    """What changes how every figure must be read."""
    found = []
    if is_fluid(run):
        found.append(Banner("caution", fluid_label(run)))
    scale = run.get("size_scale", 1)
    if scale != 1:
        found.append(
            Banner(
                "caution",
                f"Message sizes are scaled by {scale:g}: no time or bandwidth here "
                "is that of the traced job.",
            )
        )
    check = run.get("byte_conservation", {})
    if not check.get("holds", True):
        found.append(Banner("error", "Bytes were not conserved: don't trust these figures."))
    if not check.get("complete", True):
        done, total = run.get("ops_done", 0), run.get("ops_total", 0)
        found.append(
            Banner(
                "error",
                f"The run is incomplete: {count_text(done)} of {count_text(total)} "
                "operations completed.",
            )
        )
    return found


def headline(records: RunRecords) -> list[Tile]:
    """The figures that a reader looks for first."""
    collectives = records.collectives
    done = collectives.filter(pl.col("complete"))
    times = distribution(done["completion_time_ns"].drop_nulls().to_numpy())
    slowdown = distribution(records.flows["slowdown"].drop_nulls().to_numpy())
    ideal = done.filter(pl.col("ranks") > 1)["ideal_ratio"].drop_nulls()
    median = float(ideal.median()) if len(ideal) else None  # type: ignore[arg-type]
    tail = "p99" if slowdown["p99"] is not None else "max"
    return [
        Tile("Emulated time", duration_text(records.run.get("emulated_ns"))),
        Tile("Collectives", count_text(len(done)), f"of {count_text(len(collectives))} complete",
             len(done) < len(collectives)),
        Tile("Completion time, median", duration_text(times["p50"]),
             f"largest {duration_text(times['max'])}"),
        Tile("Of ideal, median", share_text(median),
             f"from the last start {_from_last_start(done)}"),
        Tile("Exposed communication", share_text(_exposed(records.run)), "of time, mean of ranks"),
        Tile(f"Flow slowdown, {tail}", f"{slowdown[tail]:.2f}" if slowdown["count"] else "n/a",
             f"{count_text(slowdown['count'])} flows"),
        *_packet_tiles(records),
    ]  # fmt: skip


def _packet_tiles(records: RunRecords) -> Iterator[Tile]:
    """What happened to packets; for a prediction by flows, that they are not modelled."""
    titles = ("ECN marks", "Pause frames", "Dropped", "Sent again")
    if is_fluid(records.run):
        yield from (Tile(title, MISSING, NOT_MODELLED) for title in titles)
        return
    counts = [
        *_queue_counts(records),
        int(records.collectives["retransmitted_packets"].sum()),
    ]
    details = ("at egress queues", "sent", "packets", "packets")
    for title, count, detail in zip(titles, counts, details, strict=True):
        alarming = title == "Dropped" and bool(count)
        yield Tile(title, count_text(count), "not seen" if count is None else detail, alarming)


def _queue_counts(records: RunRecords) -> list[int | None]:
    """Marks, pause frames and drops; of a real network what the kernel counted."""
    if is_real_network(records.run):
        totals = network_totals(records.run)
        return [totals["ecn_marked_packets"], None, totals["dropped_packets"]]
    names = ("marked_packets", "pause_frames_sent", "dropped_packets")
    return [int(records.queues[name].sum()) for name in names]


def _from_last_start(done: pl.DataFrame) -> str:
    """Median of the ideal over the time from the last start: without waiting for late ranks."""
    waited = pl.col("completion_time_after_last_arrival_ns")
    ratios = done.filter((pl.col("ranks") > 1) & (waited > 0)).select(pl.col("ideal_ns") / waited)
    median = ratios.to_series().median()
    if not isinstance(median, float):
        return share_text(None)
    return "> 100 %" if median > 1 else share_text(median)


def _exposed(run: Mapping[str, Any]) -> float | None:
    """Time in which a rank communicates and computes nothing, over the emulated time."""
    total_ns = run.get("emulated_ns", 0)
    spent = run.get("rank_time_shares") or {}
    return spent["exposed_communication_ns"] / total_ns if spent and total_ns else None


_NAMED = {
    "command": "Command",
    "model": "Model",
    "lab": "Lab",
    "trace": "Trace",
    "profile": "Profile",
    "ranks": "Ranks",
    "iterations": "Iterations",
    "seed": "Seed",
    "time_dilation": "Time dilation",
    "size_scale": "Size scale",
    "overrides": "Changed settings",
    "clock": "Clock",
    "started_at": "Started",
    "outcome": "Outcome",
}


def run_facts(run: Mapping[str, Any]) -> dict[str, str]:
    """Facts by their titles; what the run doesn't say is left out."""
    facts = {title: _text(run[key]) for key, title in _NAMED.items() if run.get(key) is not None}
    job = run["job"]
    facts["Fabric"] = _fabric(job)
    facts["Congestion control"] = _congestion_control(job)
    facts["Series"] = _sampling(run)
    facts["MTU"] = f"{job['transport']['mtu_bytes']} B"
    facts["Emulated time"] = duration_text(run.get("emulated_ns"))
    if "wall_seconds" in run:
        facts["Wall time"] = duration_text(run["wall_seconds"] * 1e9)
    facts["rankwire"] = str(run.get("versions", {}).get("rankwire", ""))
    facts["Operations"] = f"{count_text(run.get('ops_done'))} of {count_text(run.get('ops_total'))}"
    facts["Bytes"] = _conservation(run.get("byte_conservation", {}))
    return {title: text for title, text in facts.items() if text}


def _text(value: Any) -> str:
    """A fact on one line; of nested ones the scalars."""
    if isinstance(value, Mapping):
        return ", ".join(f"{key} {_text(item)}" for key, item in value.items() if item is not None)
    if isinstance(value, Sequence) and not isinstance(value, str):
        return ", ".join(_text(item) for item in value)
    return f"{value:g}" if isinstance(value, float) else str(value)


def _fabric(job: Mapping[str, Any]) -> str:
    """Counts and rates."""
    rates = sorted({link["rate_bps"] for link in job["links"]})
    shown = " and ".join(rate_text(rate) for rate in rates[:3])
    sizes = [len(job[key]) for key in ("nics", "switches", "links")]
    return f"{sizes[0]} NICs, {sizes[1]} switches, {sizes[2]} links of {shown}"


def _congestion_control(job: Mapping[str, Any]) -> str:
    """The algorithm's name; with several classes of data packets, each one's."""
    first = str(job.get("congestion_control", {}).get("algorithm", ""))
    further = job.get("further_classes", [])
    if not further:
        return first
    named = [("data", first)]
    named += [(item["name"], item["congestion_control"]["algorithm"]) for item in further]
    return ", ".join(f"{name}: {algorithm}" for name, algorithm in named)


def _sampling(run: Mapping[str, Any]) -> str:
    """Resolution of the time series, and what was asked for if they had to be coarser."""
    taken_ns = run.get("sample_interval_ns", 0)
    asked_ns = run["job"].get("telemetry", {}).get("sample_interval_ps", 0) / 1000
    if not taken_ns:
        return ""
    text = f"every {duration_text(taken_ns)}"
    if taken_ns > asked_ns > 0:
        text += f"; {duration_text(asked_ns)} were asked for (telemetry.max_samples)"
    return text


def _conservation(check: Mapping[str, Any]) -> str:
    """Sent, received and expected bytes, and whether they agree; apart, what announces them."""
    if not check:
        return ""
    cleared = check.get("clear_to_send_messages", 0)
    return _bytes(check) + (f", {count_text(cleared)} clear-to-send messages" if cleared else "")


def _bytes(check: Mapping[str, Any]) -> str:
    sums = [check[f"{name}_bytes"] for name in ("sent", "received", "expected")]
    if len(set(sums)) == 1:
        return f"{count_text(sums[0])} sent = received = expected"
    return " / ".join(
        f"{count_text(value)} {name}"
        for value, name in zip(sums, ("sent", "received", "expected"), strict=True)
    )


def flattened(value: Any, path: str = "") -> Iterator[tuple[str, str]]:
    """Dotted paths and values of a nested document; long lists only by their length."""
    if isinstance(value, Mapping):
        for key, item in value.items():
            yield from flattened(item, f"{path}.{key}" if path else str(key))
    elif isinstance(value, list) and (len(value) > 8 or any(isinstance(v, dict) for v in value)):
        yield path, f"{len(value)} entries"
    else:
        yield path, _text(value)

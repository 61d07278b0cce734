"""Runs the sweeps of lab_configs/published and writes docs/published.md from their records.

`python docs/figures/published.py [DIRECTORY]`; a minute or two. The sweeps' directories are kept in
DIRECTORY (`runs/published`), and only what is missing there is predicted again.
"""

import itertools
import json
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import matplotlib

matplotlib.use("svg")
import matplotlib.pyplot as plt
import numpy as np
import polars as pl
from matplotlib.axes import Axes

from emulator.cli import main as rankwire
from metrics.analysis.loads import tier_of
from metrics.records import RunRecords, load

DOCS = Path(__file__).parents[1]
PUBLISHED = DOCS.parent / "lab_configs" / "published"
BINS = 200
"""Of a picture over time."""
BURST_FROM = 0.96
"""Share of the step at which its last burst is shown."""
BLUE, ORANGE, GREEN, GREY = "#1f5fa8", "#d9702b", "#2a9d7c", "#777777"


@dataclass(frozen=True)
class Swept:
    """A sweep that is complete."""

    directory: Path
    document: dict[str, Any]
    """`sweep.json`."""
    points: pl.DataFrame
    """`sweep.parquet`."""

    def records(self, **settings: object) -> list[RunRecords]:
        """The records of the points with these settings, by seed; `__` stands for a dot."""
        wanted = {name.replace("__", "."): value for name, value in settings.items()}
        chosen = self.points.filter(*(pl.col(name) == value for name, value in wanted.items()))
        return [load(Path(path)) for path in chosen.sort("seed")["directory"]]

    @property
    def profiles(self) -> list[str]:
        """The profiles of the grid, in its order."""
        profiles: list[str] = self.document["spec"]["grid"]["default_profile"]
        return profiles


def swept(name: str, directory: Path) -> Swept:
    """Run what is missing of a sweep; every expectation must hold."""
    out = directory / name
    if rankwire(["sweep", str(PUBLISHED / name / "sweep.yaml"), "--out", str(out), "--quiet"]):
        raise SystemExit(f"{name}: an expectation does not hold")
    document = json.loads((out / "sweep.json").read_text(encoding="utf-8"))
    return Swept(out, document, pl.read_parquet(out / "sweep.parquet"))


def times_us(records: RunRecords, kind: str) -> np.ndarray[Any, np.dtype[np.float64]]:
    """Completion times of a kind of collective, in their order."""
    chosen = records.collectives.filter(pl.col("kind").cast(pl.String) == kind)
    return chosen.sort("start_ns")["completion_time_ns"].to_numpy() / 1e3


def message_times_us(records: RunRecords, kind: str) -> np.ndarray[Any, np.dtype[np.float64]]:
    """Completion times of the messages of a kind of collective, ascending."""
    chosen = records.collectives.filter(pl.col("kind").cast(pl.String) == kind)
    flows = records.flows.join(chosen.select("instance", "iteration"), on=["instance", "iteration"])
    return np.sort(flows["completion_time_ns"].to_numpy() / 1e3)


def draw_mixed(sweep: Swept, place: tuple[Axes, Axes]) -> None:
    """All-reduces one by one, and how the all-to-alls' messages are spread."""
    reduces, exchanges, both = sweep.profiles
    one_by_one, spread = place
    for profile, colour, label in ((reduces, BLUE, "alone"), (both, ORANGE, "mixed")):
        for seed, records in enumerate(sweep.records(default_profile=profile)):
            times = times_us(records, "all_reduce")
            turns = np.arange(1, len(times) + 1)
            shown = label if seed == 0 else None
            one_by_one.plot(turns, times, "o-", ms=4, lw=0.8, color=colour, label=shown)
    for profile, colour, label in ((exchanges, BLUE, "alone"), (both, ORANGE, "mixed")):
        for seed, records in enumerate(sweep.records(default_profile=profile)):
            times = message_times_us(records, "all_to_all")
            share = 1 - (np.arange(len(times)) + 1) / (len(times) + 1)
            shown = label if seed == 0 else None
            spread.plot(times, share, lw=1.2, color=colour, label=shown)
    one_by_one.set(xlabel="all-reduce", ylabel="time, µs", ylim=(0, None))
    one_by_one.set_xticks(turns)
    spread.set(xlabel="time of an all-to-all's message, µs", ylabel="share that takes longer")
    spread.set_yscale("log")


def draw_quarter(sweep: Swept, place: Axes) -> None:
    """Slowdown by collective, beside what was published."""
    outcomes = sweep.document["expectations"]
    names = ["all-to-all", "all-gather", "all-reduce, small"]
    where = np.arange(len(names))
    place.bar(where - 0.2, [float(one["published"]) for one in outcomes], 0.36, color=GREY)
    place.bar(where + 0.2, [one["values"][0] for one in outcomes], 0.36, color=BLUE)
    place.axhline(4, color="#bbb", lw=0.8)
    place.set_xticks(where, names)
    place.set(ylabel="times slower at 100 than at 400 Gb/s")
    place.legend(["ratio of bandwidths", "published", "rankwire"], frameon=False, fontsize=8)


RATE, TIME = "topology.host_link.rate_gbps", "all_reduce.p50_ns"
LEAST_GAIN = 0.25
"""Of twice the bandwidth, or it counts as not improving."""


def times_by_rate(sweep: Swept, lab: str) -> tuple[list[int], list[float]]:
    """Rates of a lab, ascending, and the all-reduce's times, us."""
    points = sweep.points.filter(pl.col("lab") == lab).sort(RATE)
    return points[RATE].to_list(), (points[TIME] / 1e3).to_list()


def knee(sweep: Swept, lab: str) -> int | None:
    """Place of the rate from which on twice as much gains less than `LEAST_GAIN`."""
    _, times = times_by_rate(sweep, lab)
    pairs = enumerate(itertools.pairwise(times))
    return next((place for place, (one, two) in pairs if two > (1 - LEAST_GAIN) * one), None)


def draw_topologies(sweep: Swept, place: Axes) -> None:
    """Time over bandwidth, and where it stops improving."""
    for lab, colour in zip(sweep.document["spec"]["lab"], (BLUE, ORANGE, GREEN), strict=True):
        rates, times = times_by_rate(sweep, lab)
        place.plot(rates, times, "o-", ms=4, color=colour, label=lab.removesuffix(".yaml"))
        at = knee(sweep, lab)
        if at is not None:
            place.plot(rates[at], times[at], "s", ms=11, mfc="none", color=colour)
    place.set(xlabel="rate of a NIC, Gb/s", ylabel="all-reduce of 64 KiB, µs")
    place.set_xscale("log", base=2)
    place.set_yscale("log")
    place.set_xticks(rates, [str(rate) for rate in rates])


def knees(sweep: Swept) -> str:
    """The bandwidth beyond which each topology stops improving, in words."""
    words = []
    for lab in sweep.document["spec"]["lab"]:
        rates, at = times_by_rate(sweep, lab)[0], knee(sweep, lab)
        reached = "none measured" if at is None else f"{rates[at]} Gb/s"
        words.append(f"{lab.removesuffix('.yaml')} {reached}")
    return ", ".join(words)


def draw_idle(sweep: Swept, place: tuple[Axes, Axes]) -> None:
    """Utilisation over time: the mean of the NICs' lines and of those between switches."""
    (records,) = sweep.records()
    end_ns = records.run["emulated_ns"]
    links = records.links.with_columns(
        pl.Series("tier", [tier_of(*ends) for ends in links_ends(records)])
    )
    for axes, first_ns in zip(place, (0, BURST_FROM * end_ns), strict=True):
        for tier, colour in (("NIC to switch", BLUE), ("switch to switch", ORANGE)):
            chosen = links.filter(pl.col("tier") == tier)
            lines = chosen.select("link", "direction").n_unique()
            step_ns = max((end_ns - first_ns) / BINS, float(chosen["interval_ns"].median() or 1))
            bins = np.arange(first_ns, end_ns + step_ns, step_ns)
            busy_ns, _ = np.histogram(
                chosen["time_ns"] - 1, bins, weights=chosen["busy_ns"].to_numpy()
            )
            shares = np.append(busy_ns / (lines * step_ns), 0)
            axes.fill_between(bins / 1e6, shares, step="post", color=colour, alpha=0.6, label=tier)
        axes.set(ylabel="mean utilisation", ylim=(0, None), xlim=(first_ns / 1e6, end_ns / 1e6))
    place[-1].set_xlabel("time, ms (emulated)")


def links_ends(records: RunRecords) -> list[tuple[str, str]]:
    """The ends of every row of the links' table."""
    ends = records.links.select(pl.col("source", "destination").cast(pl.String))
    return [(source, destination) for source, destination in ends.iter_rows()]


def draw_entropy(sweep: Swept, place: tuple[Axes, Axes]) -> None:
    """Bandwidth and balance for each number of queue pairs, hashed and sprayed."""
    count, mode = "transport.qps_per_peer", "switches.path_selection.mode"
    for axes, figure, label in (
        (place[0], "all_reduce.busbw_GBps", "busbw of an all-reduce, GB/s"),
        (place[1], "link_max_over_mean", "busiest link over the mean"),
    ):
        means = sweep.points.group_by(mode, count).agg(pl.col(figure).mean()).sort(mode, count)
        for offset, (kind, colour) in enumerate((("flow", BLUE), ("packet", ORANGE))):
            chosen = means.filter(pl.col(mode) == kind)
            where = np.arange(len(chosen)) + 0.36 * offset - 0.18
            shown = {"flow": "hashed", "packet": "sprayed"}[kind]
            axes.bar(where, chosen[figure], 0.34, color=colour, label=shown)
        axes.set_xticks(np.arange(len(chosen)), [f"{n} QP" for n in chosen[count]])
        axes.set(ylabel=label)
        axes.margins(y=0.25)


RESULTS = {
    "mixed-collectives": (draw_mixed, (1, 2)),
    "quarter-bandwidth": (draw_quarter, (1, 1)),
    "direct-topologies": (draw_topologies, (1, 1)),
    "idle-fabric": (draw_idle, (2, 1)),
    "ecmp-entropy": (draw_entropy, (1, 2)),
}


def draw(name: str, sweep: Swept) -> None:
    """One picture."""
    painter, shape = RESULTS[name]
    figure, axes = plt.subplots(
        *shape, figsize=(7.5, 3.2 if shape[0] == 1 else 4.6), layout="constrained"
    )
    painter(sweep, axes)
    for one in np.atleast_1d(axes).flat:
        if one.get_legend() is None:
            one.legend(fontsize=8, frameon=False)
    figure.savefig(DOCS / f"images/published-{name}.svg", metadata={"Date": None})
    plt.close(figure)


def table(sweep: Swept) -> str:
    """What was published beside what is measured, a row for each expectation."""
    lines = ["| expected | published | measured, by seed | bounds |", "|---|---|---|---|"]
    for one in sweep.document["expectations"]:
        bounds = [f"≥ {one['at_least']:g}"] if "at_least" in one else []
        bounds += [f"≤ {one['at_most']:g}"] if "at_most" in one else []
        measured = ", ".join(f"{value:.3g}" for value in one["values"])
        lines.append(
            f"| {one['that']}: `{one['figure']}`{divided(one)} | {one['published']} "
            f"| {measured} | {' and '.join(bounds)} |"
        )
    remarks = [
        f"* {one['that']}: {one['remark']}"
        for one in sweep.document["expectations"]
        if "remark" in one
    ]
    return "\n".join([*lines, *([""] if remarks else []), *remarks])


def divided(outcome: dict[str, Any]) -> str:
    """A ratio's divisor in words."""
    if "over" not in outcome:
        return ""
    where = ", ".join(f"{name} {value}" for name, value in outcome["over"]["where"].items())
    return f", over that of {where}"


def main() -> None:
    """Sweep, draw, write."""
    directory = Path(sys.argv[1]) if len(sys.argv) > 1 else DOCS.parent / "runs" / "published"
    plt.rcParams["svg.hashsalt"] = "rankwire"  # the same picture from the same figures
    page = (DOCS / "figures/published.md.in").read_text(encoding="utf-8")
    for name in RESULTS:
        sweep = swept(name, directory)
        draw(name, sweep)
        page = page.replace(f"@{name}@", table(sweep))
        if name == "direct-topologies":
            page = page.replace("@knees@", knees(sweep))
    (DOCS / "published.md").write_text(page, encoding="utf-8")


if __name__ == "__main__":
    main()

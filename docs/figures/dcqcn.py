"""Draws and tabulates DCQCN as it runs here beside its equations: writes docs/dcqcn.md.

`python docs/figures/dcqcn.py`; about a minute. Everything is predicted in virtual time with the
engine that `run` uses too; nothing is taken from elsewhere but the reference columns, which name
their source.
"""

import json
from dataclasses import dataclass
from pathlib import Path

import matplotlib

matplotlib.use("svg")
import matplotlib.pyplot as plt
import numpy as np

from emulator.job import Job, JobRequest, build_job
from emulator.predict import predict
from metrics.analysis.fairness import jain_index
from metrics.analysis.fixed_point import (
    FluidParameters,
    approximate_queue_bytes,
    fixed_point,
    fluid_parameters,
)

DOCS = Path(__file__).parents[1]
LAB = "paper-40g"
FLOWS = (1, 2, 3, 4, 6, 8, 10, 12, 14, 16)
TOTAL_BYTES = 1_200_000_000
DATA_PRIORITY = 3

# Independent packet-level simulation of the same equations: mean queue in KB, CNPs per second and
# flow, alpha; and the fluid model's own table.
REFERENCE = {2: (24.5, 2155, 0.113), 4: (54.5, 2634, 0.137), 8: (122.0, 3228, 0.165)}


@dataclass(frozen=True)
class Steady:
    """What a whole job measured in the second half of its time."""

    queue_bytes: float
    deviation_bytes: float
    cnps_per_second: float
    alpha: float
    utilisation: float
    jain: float


def job(flows: int, *overrides: str, total_bytes: int = TOTAL_BYTES) -> Job:
    """`flows` senders into one receiver."""
    settings = [f"topology.hosts_per_leaf={flows + 1}", *overrides]
    profile = f"incast,size_bytes={total_bytes // flows},repeats=1"
    return build_job(JobRequest(lab=LAB, overrides=settings, profile=profile))


def steady(flows: int, mode: str) -> Steady:
    """Measure the steady state of N flows."""
    measured = predict(job(flows, f"notification_point.mode={mode}"))
    queues, qps, links = measured["queues"], measured["qps"], measured["links"]
    end_ps = int(links["time_ps"].max())
    window = (0.4 * end_ps, 0.9 * end_ps)
    towards = (queues["is_switch"]) & (queues["port"] == 0) & (queues["priority"] == DATA_PRIORITY)
    inside = towards & (queues["time_ps"] > window[0]) & (queues["time_ps"] < window[1])
    interval_ps = int(np.median(links["interval_ps"]))
    samples = (window[1] - window[0]) / interval_ps
    depth = queues["depth_bytes"][inside].astype(float)
    depth = np.concatenate([depth, np.zeros(max(0, round(samples) - len(depth)))])
    settled = (qps["time_ps"] > window[0]) & (qps["time_ps"] < window[1])
    rates = [
        qps["current_rate_bps"][settled & (qps["source_rank"] == rank)].mean()
        for rank in np.unique(qps["source_rank"][settled])
    ]
    # Link 0 is the receiver's; direction 1 leaves the switch or the NIC, whichever carries data.
    data = [links["data_bytes"][(links["link"] == 0) & (links["direction"] == d)] for d in (0, 1)]
    direction = int(data[1].sum() > data[0].sum())
    passed = (links["link"] == 0) & (links["direction"] == direction)
    passed &= (links["time_ps"] > window[0]) & (links["time_ps"] < window[1])
    cnps = measured["counters"]["nics"]["cnps_sent"].sum() / (end_ps * 1e-12) / flows
    return Steady(
        queue_bytes=float(depth.mean()),
        deviation_bytes=float(depth.std()),
        cnps_per_second=float(cnps),
        alpha=float(qps["alpha"][settled].mean()),
        utilisation=float(links["busy_ps"][passed].sum() / (window[1] - window[0])),
        jain=float(jain_index(np.array(rates)) or 0.0),
    )


def fluid(flows: int) -> FluidParameters:
    """The fluid model's parameters for the lab."""
    return fluid_parameters(json.loads(job(flows).config_json), flows)


def draw_queue(trailing: dict[int, Steady], immediate: dict[int, Steady]) -> None:
    """Queue length against the fixed point."""
    flows = np.arange(1, 17)
    exact = [fixed_point(fluid(n)).queue_bytes / 1e3 for n in flows]
    approximate = [approximate_queue_bytes(fluid(n)) / 1e3 for n in flows]
    figure, axes = plt.subplots(figsize=(7.5, 4.2), layout="constrained")
    axes.axhline(200, color="#bbb", lw=0.8)
    axes.text(1, 203, "Kmax", color="#777", fontsize=8)
    axes.plot(flows, exact, color="#1f5fa8", label="fixed point of the fluid model")
    axes.plot(flows, approximate, color="#1f5fa8", ls="--", label="its form for small p")
    for measured, colour, label in (
        (trailing, "#d9702b", "rankwire, notifications immediate and trailing (paper)"),
        (immediate, "#2a9d7c", "rankwire, notifications immediate only (mlx5)"),
    ):
        mean = [measured[n].queue_bytes / 1e3 for n in FLOWS]
        spread = [measured[n].deviation_bytes / 1e3 for n in FLOWS]
        axes.errorbar(
            FLOWS, mean, spread, fmt="o", ms=4, lw=0.8, capsize=2, color=colour, label=label
        )
    axes.set(
        xlabel="flows N into one 40 Gb/s port", ylabel="queue, KB (mean, bars: standard deviation)"
    )
    axes.set_ylim(0, 260)
    axes.legend(fontsize=8, frameon=False)
    figure.savefig(DOCS / "images/dcqcn-queue.svg", metadata={"Date": None})


def draw_reaction() -> None:
    """R_C, R_T and alpha after a single notification."""
    measured = predict(
        job(
            2,
            "telemetry.sample_interval_ns=1000",
            "telemetry.max_samples=4096",
            # One notification per flow: none after the first for as long as the picture lasts.
            "notification_point.cnp_interval_ns=100000000",
            "notification_point.mode=immediate",
            total_bytes=8_000_000,
        )
    )
    qps = measured["qps"]
    own = qps["source_rank"] == qps["source_rank"].min()
    time_us = qps["time_ps"][own] / 1e6
    figure, (rate, alpha) = plt.subplots(
        2, 1, figsize=(7.5, 4.6), sharex=True, layout="constrained"
    )
    rate.step(time_us, qps["current_rate_bps"][own] / 1e9, color="#1f5fa8", label="R_C")
    rate.step(time_us, qps["target_rate_bps"][own] / 1e9, color="#d9702b", ls="--", label="R_T")
    rate.set(ylabel="rate, Gb/s", ylim=(0, 44))
    rate.legend(fontsize=8, frameon=False, loc="lower right")
    alpha.step(time_us, qps["alpha"][own], color="#2a9d7c")
    alpha.set(ylabel="alpha", xlabel="time, µs (emulated)")
    figure.savefig(DOCS / "images/dcqcn-reaction.svg", metadata={"Date": None})


def rows(header: str, lines: list[list[object]]) -> str:
    """A table in Markdown."""
    rule = "|" + "---|" * header.count(" | ") + "---|"
    return "\n".join(
        [f"| {header} |", rule, *(f"| {' | '.join(map(str, line))} |" for line in lines)]
    )


def queue_table(trailing: dict[int, Steady], immediate: dict[int, Steady]) -> str:
    """Queue lengths measured and computed, a row for each N."""
    lines: list[list[object]] = []
    for n in FLOWS:
        parameters = fluid(n)
        lines.append(
            [
                n,
                f"{fixed_point(parameters).queue_bytes / 1e3:.1f}",
                f"{trailing[n].queue_bytes / 1e3:.1f} ± {trailing[n].deviation_bytes / 1e3:.0f}",
                f"{approximate_queue_bytes(parameters) / 1e3:.1f}",
                f"{immediate[n].queue_bytes / 1e3:.1f} ± {immediate[n].deviation_bytes / 1e3:.0f}",
                REFERENCE.get(n, ("",))[0],
                f"{trailing[n].utilisation:.3f}",
                f"{trailing[n].jain:.4f}",
            ]
        )
    header = (
        "N | fixed point, KB | paper's notifications, KB | small p, KB | immediate only, KB "
        "| reference, KB | utilisation | Jain's index"
    )
    return rows(header, lines)


def notification_table(trailing: dict[int, Steady], immediate: dict[int, Steady]) -> str:
    """Notifications and alpha measured and computed, a row for each N."""
    lines: list[list[object]] = []
    for n in FLOWS:
        point = fixed_point(fluid(n))
        _, cnps, alpha = REFERENCE.get(n, ("", "", ""))
        model = (
            ("", "") if point.is_pinned else (f"{point.cnps_per_second:.0f}", f"{point.alpha:.3f}")
        )
        lines.append(
            [
                n,
                *(
                    model[0],
                    f"{trailing[n].cnps_per_second:.0f}",
                    f"{immediate[n].cnps_per_second:.0f}",
                    cnps,
                ),
                *(model[1], f"{trailing[n].alpha:.3f}", f"{immediate[n].alpha:.3f}", alpha),
            ]
        )
    header = (
        "N | CNP/s per flow: fluid model | paper's | immediate only | reference "
        "| alpha: fluid model | paper's | immediate only | reference"
    )
    return rows(header, lines)


def main() -> None:
    """Measure, draw, write."""
    plt.rcParams["svg.hashsalt"] = "rankwire"  # the same picture from the same figures
    trailing = {n: steady(n, "immediate_and_trailing") for n in FLOWS}
    immediate = {n: steady(n, "immediate") for n in FLOWS}
    draw_queue(trailing, immediate)
    draw_reaction()
    page = (DOCS / "figures/dcqcn.md.in").read_text(encoding="utf-8")
    page = page.replace("@QUEUES@", queue_table(trailing, immediate))
    page = page.replace("@NOTIFICATIONS@", notification_table(trailing, immediate))
    (DOCS / "dcqcn.md").write_text(page, encoding="utf-8")


if __name__ == "__main__":
    main()

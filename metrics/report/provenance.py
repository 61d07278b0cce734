"""Where the run's input came from, what was changed in it, and how well the wall clock kept up."""

from collections.abc import Mapping, Sequence
from typing import Any

from metrics.presentation import MISSING, count_text, duration_text
from metrics.report.markup import Cell, Column, Raw, element, table

__all__ = ["settings_tables", "trace_tables", "wall_clock_table"]

_LATENESS = {
    "events": "Events",
    "mean_ns": "Late, mean",
    "p50_ns": "Late, p50",
    "p90_ns": "Late, p90",
    "p99_ns": "Late, p99",
    "p999_ns": "Late, p99.9",
    "max_ns": "Late, max",
    "frames": "Frames",
    "late_frames": "Late frames",
    "frame_p999_ns": "Frames late, p99.9",
    "frame_max_ns": "Frames late, max",
}
"""Figures of an agent's lateness by the names of the engine, and as columns."""


def settings_tables(settings: Mapping[str, Mapping[str, Sequence[object]]]) -> list[Raw]:
    """One table per subject: parameter, value, and the source of the value."""
    columns = [
        Column("Parameter", numeric=False),
        Column("Value", numeric=False),
        Column("From", numeric=False),
    ]
    blocks = []
    for title, values in settings.items():
        rows = [
            [Cell(name), Cell(str(value)), Cell(str(source))]
            for name, (value, source) in values.items()
        ]
        blocks.append(element("div", element("h3", title), table(columns, rows)))
    return blocks


def trace_tables(run: Mapping[str, Any]) -> list[Raw]:
    """What binding and compiling the trace found, added, dropped, scaled or guessed."""
    compilation = run.get("compilation", {})
    subjects = {
        "Found while binding the trace": run.get("binding_counts", {}),
        "Compiled": {k: v for k, v in compilation.items() if isinstance(v, int) and v},
        "Algorithms, instances in one iteration": compilation.get("algorithms", {}),
        "Bytes sent by kind": compilation.get("collective_bytes", {}),
    }
    columns = [Column("", numeric=False), Column("Count")]
    blocks = []
    for title, counts in subjects.items():
        rows = [
            [Cell(name.replace("_", " ")), Cell(count_text(value), value)]
            for name, value in counts.items()
        ]
        if rows:
            blocks.append(element("div", element("h3", title), table(columns, rows)))
    return blocks


def wall_clock_table(control: Mapping[str, Any]) -> Raw | None:
    """Clock offset of every agent, and how late its events were handled, in wall time."""
    agents = control.get("agents", [])
    if not agents:
        return None
    scalars = _shown_lateness(agents)
    were_set = any(agent.get("clock_steps") for agent in agents)
    columns = [
        Column("Agent", numeric=False),
        Column("Nodes"),
        Column("Clock offset", hint="Against the controller's clock"),
        Column("Uncertainty", hint="Half of the best round trip"),
        *([Column("Clock set", hint="During the run, by so much")] if were_set else []),
        *(Column(_LATENESS[name]) for name in scalars),
    ]
    rows = [
        [
            Cell(agent["name"]),
            Cell(str(len(agent["nodes"])), len(agent["nodes"])),
            _duration(agent.get("clock_offset_ns")),
            _duration(agent.get("clock_uncertainty_ns")),
            *([_duration(agent.get("clock_set_ns"))] if were_set else []),
            *(_lateness(name, agent.get("lateness", {}).get(name)) for name in scalars),
        ]
        for agent in agents
    ]
    return table(columns, rows)


def _shown_lateness(agents: Sequence[Mapping[str, Any]]) -> list[str]:
    """Figures that an agent tells. Frames of a real network have no time to be late against."""
    told = [agent.get("lateness", {}) for agent in agents]
    has_frames = any(lateness.get("frames") for lateness in told)
    return [
        name
        for name in _LATENESS
        if any(name in lateness for lateness in told) and (has_frames or "frame" not in name)
    ]


def _duration(ns: float | None) -> Cell:
    """A wall-clock duration; unknown is not zero."""
    return Cell(duration_text(ns), -1.0 if ns is None else ns)


def _lateness(name: str, value: float | None) -> Cell:
    """A figure of the lateness: a time by its name, else a count."""
    if value is None:
        return Cell(MISSING)
    return _duration(value) if name.endswith("_ns") else Cell(count_text(value), value)

"""The page: sections in order, with style, script and the chart library inline."""

from collections.abc import Mapping, Sequence
from importlib.resources import files
from pathlib import Path
from typing import Any

from plotly.offline import get_plotlyjs

from metrics.analysis.loads import link_loads
from metrics.analysis.pause_trees import pause_trees
from metrics.analysis.real_network import is_real_network, measured_loads, sampled_loads
from metrics.fluid import is_fluid
from metrics.presentation import count_text
from metrics.records import RunRecords, load
from metrics.records.series import fabric_names
from metrics.report import facts, path_tables, pause_tables, provenance, tables
from metrics.report.chart_block import chart_block
from metrics.report.charts import (
    distributions,
    ecmp,
    links,
    paths,
    pauses,
    ports,
    queues,
    ranks,
    rates,
)
from metrics.report.counter_section import counter_section
from metrics.report.drawing import network_drawing
from metrics.report.markup import Raw, element, facts_list

__all__ = ["REPORT_FILE", "assemble", "write_report"]

REPORT_FILE = "report.html"


def write_report(directory: Path | str | RunRecords) -> Path:
    """Write `report.html` into a run directory, and return its path.

    Raises `InputError` when the directory holds no readable records.
    """
    records = directory if isinstance(directory, RunRecords) else load(directory)
    run = records.run
    title = _title(run)
    sections = [
        _collectives(records),
        _distributions(records),
        _ranks(records),
        _fabric(records),
        _paths(records),
        _pauses(records),
        _senders(records),
        counter_section(records),
        _wall_clock(records),
        _trace(records),
        _settings(records),
        _accounting(records),
    ]
    path = records.directory / REPORT_FILE
    path.write_text(assemble(title, _header(records, title), sections), encoding="utf-8")
    return path


def _title(run: Mapping[str, Any]) -> str:
    """What ran where."""
    what = {"predict": "Prediction on", "run": "Run on"}.get(str(run.get("command")), "Run on")
    what = f"Fluid {what.lower()}" if is_fluid(run) else what
    traffic = run.get("profile") or Path(str(run.get("trace") or "")).name
    return f"{what} {run.get('lab', 'unnamed lab')}" + (f": {traffic}" if traffic else "")


def assemble(title: str, header: Raw, sections: Sequence[tuple[str, Raw]]) -> str:
    """A whole document from a header and titled sections; empty sections are left out."""
    shown = [(name, body) for name, body in sections if body]
    links_to = [
        element("a", name, href=f"#section-{number}") for number, (name, _) in enumerate(shown)
    ]
    bodies = [
        element("section", element("h2", name), body, id=f"section-{number}")
        for number, (name, body) in enumerate(shown)
    ]
    asset = files("metrics.report")
    return "\n".join(
        [
            "<!doctype html>",
            '<html lang="en"><head><meta charset="utf-8">',
            '<meta name="viewport" content="width=device-width, initial-scale=1">',
            element("title", f"{title}, rankwire report"),
            f"<style>{asset.joinpath('report.css').read_text(encoding='utf-8')}</style>",
            "</head><body>",
            header,
            element("nav", *links_to),
            element("main", *bodies),
            f"<script>{get_plotlyjs()}</script>",
            f"<script>{asset.joinpath('report.js').read_text(encoding='utf-8')}</script>",
            "</body></html>\n",
        ]
    )


def printed_heading(texts: Sequence[str]) -> Raw:
    """A style that puts the texts at the top of every printed page."""
    if not texts:
        return Raw("")
    quoted = "".join(
        c if c.isalnum() or c in " .,:%" else f"\\{ord(c):x} " for c in " ".join(texts)
    )
    box = f'@top-left {{ content: "{quoted}"; width: 100%; font: 600 9pt sans-serif; }}'
    return Raw(f"<style>@media print {{ @page {{ {box} }} }}</style>")


def _header(records: RunRecords, title: str) -> Raw:
    """Banners, title, headline figures, facts, warnings."""
    run = records.run
    banners = facts.banners(run)
    lines = [element("div", banner.text, class_=f"banner {banner.level}") for banner in banners]
    tiles = [
        element(
            "div",
            element("span", tile.title, class_="tile-title"),
            element("span", tile.value, class_="tile-value"),
            element("span", tile.detail, class_="tile-detail"),
            class_="tile alarming" if tile.alarming else "tile",
        )
        for tile in facts.headline(records)
    ]
    return element(
        "header",
        printed_heading([banner.text for banner in banners]),
        element("div", *lines, class_="banners"),
        element("p", "rankwire report", class_="kicker"),
        element("h1", title),
        element("div", *tiles, class_="tiles"),
        facts_list(facts.run_facts(run)),
        _warnings(run.get("warnings", [])),
    )


def _warnings(warnings: Sequence[Any]) -> Raw:
    """The warnings, or that there are none."""
    if not warnings:
        return element("p", "No warnings.", class_="quiet")
    items = [element("li", str(warning)) for warning in warnings]
    heading = element("h2", f"Warnings ({len(items)})")
    return element("div", heading, element("ul", *items), class_="warnings")


def _collectives(records: RunRecords) -> tuple[str, Raw]:
    body, note = tables.collective_table(records.collectives)
    ideal = records.run.get("ideal", {})
    notes = (
        "Quantiles: nearest rank over the pooled completion times (last end over all ranks less "
        "first start); n/a with fewer than 1 / (1 - quantile) samples. "
        f"{ideal.get('formula', '')} {note}"
    )
    return "Collectives", Raw(body + element("p", notes, class_="note"))


def _distributions(records: RunRecords) -> tuple[str, Raw]:
    charts = [
        distributions.collective_curves(records.collectives),
        *distributions.flow_curves(records.flows),
    ]
    flow_formula = str(records.run.get("ideal", {}).get("flow_formula", ""))
    parts = [element("div", *(chart_block(chart) for chart in charts), class_="charts")]
    if len(records.flows):
        parts += [element("h3", "Messages by size"), tables.flow_table(records.flows),
                  element("p", flow_formula, class_="note")]  # fmt: skip
    return "Distributions", Raw("".join(parts))


def _ranks(records: RunRecords) -> tuple[str, Raw]:
    end_ns = int(records.run.get("emulated_ns", 0))
    blocks = [
        chart_block(ranks.rank_timeline(records.timeline, end_ns)),
        chart_block(ranks.time_split(records.timeline, end_ns)),
    ]
    late = tables.late_ranks(records.collectives)
    if late is not None:
        blocks.append(element("div", element("h3", "Late starters"), late, class_="beside"))
    return "Ranks", element("div", *blocks, class_="charts")


def _fabric(records: RunRecords) -> tuple[str, Raw]:
    end_ns = int(records.run.get("emulated_ns", 0))
    all_loads = link_loads(records.links, fabric_names(records.run["job"]).links, end_ns)
    measured = measured_loads(all_loads, records.run, end_ns)
    loads = sampled_loads(all_loads, records.run)
    events = records.run.get("link_events", [])
    blocks = [
        chart_block(links.link_lines(records.links, loads, events), "No link has sent anything."),
        chart_block(links.link_heat_map(records.links, loads, events)),
        chart_block(
            queues.queue_depths(records.queues, records.run.get("job", {})),
            _unseen_queues(records.run) or "No switch queue has held anything.",
        ),
        chart_block(
            queues.queue_events(records.queues, events),
            "" if _unseen_queues(records.run) else "No marks, pauses or drops at any queue.",
        ),
        chart_block(ports.port_series(records.queues)),
    ]
    parts = [network_drawing(records, measured), element("div", *blocks, class_="charts")]
    if len(records.links):
        body, note = tables.load_table(measured, end_ns)
        parts += [element("h3", "Busiest links"), body, element("p", note, class_="note")]
    happened = tables.link_event_table(events, records.run.get("link_event_ends", ()))
    if happened is not None:
        parts += [element("h3", "Link events"), happened]
    return "Fabric", Raw("".join(parts))


def _unseen_queues(run: Mapping[str, Any]) -> str:
    """Why nothing is known of the switches' queues over time; empty if it is."""
    if is_fluid(run):
        return "Queues are not modelled by flows."
    if is_real_network(run):
        return "The switches are real: their queues are not seen over time."
    return ""


def _paths(records: RunRecords) -> tuple[str, Raw]:
    """Which ways the flows took; nothing if that wasn't counted."""
    if records.paths.is_empty():
        return "Paths", Raw("")
    body, note = path_tables.flow_path_table(records.paths, records.flow_links)
    parts = [
        element("div", chart_block(paths.path_picture(records.flow_links)), class_="charts"),
        element("h3", "Largest flows"),
        body,
        element("p", note, class_="note"),
    ]
    if not records.ecmp.is_empty():
        body, note = path_tables.ecmp_table(records.ecmp)
        parts += [
            element("div", chart_block(ecmp.ecmp_shares_chart(records.ecmp)), class_="charts"),
            element("h3", "Balance of equal-cost ports"),
            body,
            element("p", note, class_="note"),
        ]
    return "Paths", Raw("".join(parts))


def _pauses(records: RunRecords) -> tuple[str, Raw]:
    """Who paused whom, from which congestion; nothing without pauses."""
    if records.pauses.is_empty():
        return "Pauses", Raw("")
    end_ns = int(records.run.get("emulated_ns", 0))
    trees = pause_trees(records.pauses, end_ns)
    left_out = records.run.get("pause_trees", {}).get("pauses_left_out", 0)
    body, note = pause_tables.pause_tree_table(trees, end_ns, left_out)
    parts = [
        element("div", chart_block(pauses.pause_picture(trees, end_ns)), class_="charts"),
        element("h3", "Who paused whom"),
        body,
        element("p", note, class_="note"),
    ]
    return "Pauses", Raw("".join(parts))


def _senders(records: RunRecords) -> tuple[str, Raw]:
    if is_fluid(records.run):
        missing = chart_block(None, "Rates of senders are not modelled by flows.")
        return "Senders", element("div", missing, class_="charts")
    job = records.run["job"]
    first = str(job.get("congestion_control", {}).get("algorithm", "dcqcn"))
    classes = [("", first)]
    if further := job.get("further_classes"):
        classes = [("data", first)]
        classes += [(one["name"], one["congestion_control"]["algorithm"]) for one in further]
    blocks = [
        chart_block(
            rates.sender_rates(records.qps.filter(traffic_class=number), algorithm, name),
            f"No rates were sampled{f' in class {name}' if name else ''}.",
        )
        for number, (name, algorithm) in enumerate(classes)
    ]
    return "Senders", element("div", *blocks, class_="charts")


def _settings(records: RunRecords) -> tuple[str, Raw]:
    """The parameters that hold, with where each comes from, if the run says so."""
    body = provenance.settings_tables(records.run.get("settings", {}))
    return "Settings", element("div", *body, class_="columns") if body else Raw("")


def _trace(records: RunRecords) -> tuple[str, Raw]:
    """What was added, dropped, scaled or guessed on the way from the trace to the programs."""
    body = provenance.trace_tables(records.run)
    return "From trace to traffic", element("div", *body, class_="columns") if body else Raw("")


def _wall_clock(records: RunRecords) -> tuple[str, Raw]:
    """How well the agents kept up with the wall clock."""
    body = provenance.wall_clock_table(records.run.get("control", {}))
    if body is None:
        return "Wall clock", Raw("")
    note = (
        "Wall time, not emulated. Late: an event was handled so long after its due time; divided "
        "by the time dilation it is the error that this puts on emulated times."
    )
    return "Wall clock", Raw(body + element("p", note, class_="note"))


_SHOWN_ELSEWHERE = (
    "counters",
    "warnings",
    "ideal",
    "settings",
    "job",
    "binding_counts",
    "compilation",
    "ports",
)


def _accounting(records: RunRecords) -> tuple[str, Raw]:
    """Everything that `run.json` says, folded, section by section."""
    run = records.run
    plain = {key: value for key, value in run.items() if not isinstance(value, dict)}
    blocks = [_folded("run", plain)]
    blocks += [
        _folded(key, value)
        for key, value in run.items()
        if isinstance(value, dict) and key not in _SHOWN_ELSEWHERE
    ]
    note = element(
        "p",
        "Everything that stands in run.json: configuration as resolved, what was scaled, dropped "
        "or guessed, lateness of the wall clock. The tables are beside this file as Parquet.",
        class_="note",
    )
    return "Run record", Raw(note + "".join(blocks))


def _folded(name: str, values: Any) -> Raw:
    """One part of the run record, closed until clicked."""
    facts_of = dict(facts.flattened(values))
    heading = element("summary", f"{name} ({count_text(len(facts_of))})")
    return element("details", heading, facts_list(facts_of))

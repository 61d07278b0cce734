"""From what the engine measured to a run directory."""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
from numpy.typing import NDArray

from dataplane.errors import RunError
from metrics.analysis.ecmp import ecmp_shares
from metrics.analysis.flow_paths import flow_paths
from metrics.analysis.ideal import IdealModel, ideal_model
from metrics.analysis.overlap import rank_time_shares
from metrics.analysis.pause_trees import pause_trees, trees_as_json
from metrics.analysis.real_network import is_real_network
from metrics.records.adapters import adapter_table
from metrics.records.collectives import collective_table
from metrics.records.conservation import conservation
from metrics.records.findings import adapter_findings, findings, link_rates_bps
from metrics.records.flows import flow_table
from metrics.records.link_events import (
    late_end_findings,
    link_end_rows,
    link_event_findings,
    link_event_rows,
    lost_packets,
)
from metrics.records.operations import Operations, ProgramLike
from metrics.records.pauses import pause_table
from metrics.records.series import fabric_names, flow_link_table, link_table, qp_table, queue_table
from metrics.records.storage import RunRecords, load, store
from metrics.records.switch_findings import switch_findings
from metrics.records.timeline import RowNames, timeline_table

__all__ = ["verify_bytes", "write_records"]


def write_records(
    directory: Path | str,
    *,
    run: Mapping[str, Any],
    programs: Sequence[ProgramLike],
    instances: pl.DataFrame,
    config: Mapping[str, Any],
    engine: Mapping[str, Any],
    row_names: RowNames | None = None,
    lanes: Mapping[int, Sequence[str]] | None = None,
) -> RunRecords:
    """Write the records of a finished or interrupted run into `directory`, and open them.

    `run` is what the caller knows (command, lab, trace, seed, `time_dilation`, `size_scale`,
    warnings); `config` is the job configuration that the dataplane took, `engine` what it measured,
    `instances` one row per collective instance and iteration. `row_names` and `lanes` (rank to the
    names of its lanes) label the timeline. Byte conservation is checked and stands in `run.json`;
    `verify_bytes` turns a violation into an error.
    """
    operations = Operations.joined(programs, engine["ops"])
    ideal = ideal_model(config, is_real_network=is_real_network(engine))
    flows = flow_table(operations, _nic_of_rank(config), ideal)
    collectives = collective_table(operations, instances, flows, ideal)
    flows = flows.join(
        instances.select("instance", "iteration"), on="instance", how="left", maintain_order="left"
    )
    fabric = fabric_names(config)
    crossed = flow_link_table(engine.get("flow_links", {}), fabric)
    # Beyond a NIC's own link nobody follows a flow through switches that are real.
    followed = crossed.clear() if is_real_network(engine) else crossed
    tables = {
        "collectives": collectives,
        "flows": flows,
        "links": link_table(engine.get("links", {}), fabric),
        "queues": queue_table(engine.get("queues", {}), fabric),
        "qps": qp_table(engine.get("qps", {})),
        "flow_links": crossed,
        "paths": flow_paths(followed),
        "ecmp": ecmp_shares(config, followed),
        "pauses": pause_table(
            engine.get("pauses", {}), engine.get("pause_causes", {}), config, fabric
        ),
        "adapters": adapter_table(engine.get("adapter_series", {}), fabric.nics),
        "timeline": timeline_table(operations, instances, row_names, lanes),
    }
    facts = _facts(run, operations, collectives, config, engine, ideal)
    facts["rank_time_shares"] = _mean_shares(tables["timeline"], facts["emulated_ns"])
    facts["pause_trees"] = _pause_trees(tables["pauses"], engine, facts["emulated_ns"])
    facts["sample_interval_ns"] = _sample_interval_ns(tables)
    store(Path(directory), facts, tables)
    return load(directory)


def verify_bytes(records: RunRecords) -> None:
    """Raise `RunError` when bytes were not conserved; the records stay."""
    check = records.run["byte_conservation"]
    if not check["holds"]:
        raise RunError(f"{records.directory}: {_violation(check)}")


def _facts(
    run: Mapping[str, Any],
    operations: Operations,
    collectives: pl.DataFrame,
    config: Mapping[str, Any],
    engine: Mapping[str, Any],
    ideal: IdealModel,
) -> dict[str, Any]:
    """The contents of `run.json`."""
    counters = engine.get("counters", {})
    unfinished = int((~operations.done).sum())
    emulated_ns = int(operations.end_ps[operations.done].max(initial=0)) // 1000
    check = conservation(operations, collectives, counters.get("nics", {}))
    check["lost_with_links_packets"] = lost_packets(counters.get("link_losses", {}))
    link_ends = link_end_rows(engine.get("link_event_ends", {}), config)
    facts = {
        **run,
        "ops_total": len(operations.kind),
        "ops_done": len(operations.kind) - unfinished,
        "emulated_ns": emulated_ns,
        "byte_conservation": check,
        "ideal": {
            "formula": ideal.formula,
            "flow_formula": ideal.flow_formula,
            "goodput_bps": ideal.goodput_bps,
            "slowest_nic_bps": ideal.slowest_nic_bps,
            "mtu_bytes": ideal.mtu_bytes,
        },
        "failures": _failures(engine.get("failures", {})),
        "link_events": link_event_rows(engine.get("link_events", {}), config["links"]),
        **({"link_event_ends": link_ends} if link_ends else {}),
        "counters": {name: _rows(values) for name, values in counters.items()},
        "job": config,
    }
    return facts | {"warnings": _warnings(facts, collectives, engine)}


def _warnings(
    facts: Mapping[str, Any], collectives: pl.DataFrame, engine: Mapping[str, Any]
) -> list[str]:
    """Those of the caller, and what the other facts of a run give reason to say."""
    counters, config = engine.get("counters", {}), facts["job"]
    check, unfinished = facts["byte_conservation"], facts["ops_total"] - facts["ops_done"]
    return [
        *facts.get("warnings", ()),
        *([] if check["holds"] else [_violation(check)]),
        *(
            [f"{unfinished} of {facts['ops_total']} operations didn't complete"]
            if unfinished
            else []
        ),
        *findings(facts, collectives, counters.get("wires", {}), facts["failures"]),
        *adapter_findings(
            counters.get("adapters", {}), facts.get("ports", {}), link_rates_bps(config)
        ),
        *switch_findings(
            counters.get("switch_ports", {}), [switch["name"] for switch in config["switches"]]
        ),
        *link_event_findings(
            facts["link_events"], counters.get("link_losses", {}), config, facts["emulated_ns"]
        ),
        *late_end_findings(
            facts.get("link_event_ends", []), engine.get("link_event_orders", {}), config
        ),
    ]


def _mean_shares(timeline: pl.DataFrame, emulated_ns: int) -> dict[str, float]:
    """Mean over the ranks of the time computed, communicated, exposed and idle, ns."""
    shares = list(rank_time_shares(timeline, emulated_ns).values())
    return {
        name: sum(share[name] for share in shares) / len(shares) for name in (shares or [{}])[0]
    }


def _sample_interval_ns(tables: Mapping[str, pl.DataFrame]) -> int:
    """Length of the samples that the series ended with; 0 without any."""
    lengths = [tables[name]["interval_ns"].max() for name in ("links", "queues")]
    return max((int(length) for length in lengths if isinstance(length, int)), default=0)


def _pause_trees(
    pauses: pl.DataFrame, engine: Mapping[str, Any], emulated_ns: int
) -> dict[str, Any]:
    """Who paused whom, the trees with most paused time, and how many pauses were not kept."""
    left_out = int(np.sum(engine.get("lost_pauses", {}).get("left_out", [0])))
    trees = pause_trees(pauses, emulated_ns)
    return {"trees": trees_as_json(trees), "count": len(trees), "pauses_left_out": left_out}


def _failures(columns: Mapping[str, Any]) -> list[dict[str, Any]]:
    """Queue pairs that gave up, one entry for each."""
    plain = {name: _rows(values) for name, values in columns.items()}
    return [dict(zip(plain, values, strict=True)) for values in zip(*plain.values(), strict=True)]


def _violation(check: Mapping[str, Any]) -> str:
    """One sentence for bytes that are not conserved."""
    sums = ", ".join(f"{name} {value}" for name, value in check.items() if name.endswith("_bytes"))
    broken = check["unbalanced_instances"]
    detail = f"; unbalanced instances {broken[:8]}" if broken else ""
    return f"bytes are not conserved: {sums}{detail}"


def _nic_of_rank(config: Mapping[str, Any]) -> NDArray[np.int64]:
    """Index of the NIC of each rank."""
    ranks = [nic["rank"] for nic in config["nics"]]
    index = np.zeros(max(ranks, default=-1) + 1, dtype=np.int64)
    index[ranks] = np.arange(len(ranks))
    return index


def _rows(columns: Any) -> Any:
    """Columns of counters as plain lists; anything else as it is."""
    if isinstance(columns, Mapping):
        return {name: _rows(values) for name, values in columns.items()}
    return columns.tolist() if isinstance(columns, np.ndarray | np.generic) else columns

"""Binding: from trace tables, one per rank, to a workload.

Everything that can be wrong with the traces of a job is found here, before anything starts, and
reported at once.
"""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path

import numpy as np
import numpy.typing as npt

from dataplane.errors import InputError, Problem
from traffic_profiles.actions import RowActions, row_actions
from traffic_profiles.binding_options import BindingOptions
from traffic_profiles.chakra.table import TraceTable
from traffic_profiles.findings import count_rank, count_table, warn
from traffic_profiles.graph import Edges, RankGraph, rank_graph, to_parents
from traffic_profiles.groups import GroupResolution, resolve_groups
from traffic_profiles.matching import RankRows, match_collectives, match_transfers
from traffic_profiles.order import communicator_order, idle_before_us, stream_order
from traffic_profiles.validate import execution_order
from traffic_profiles.workload import (
    NO_INSTANCE,
    Action,
    BindingReport,
    BoundTrace,
    Instance,
    Workload,
)

__all__ = ["bind"]

_PS_PER_US = np.uint64(1_000_000)


def bind(tables: Mapping[int, TraceTable], *, source: Path, options: BindingOptions) -> Workload:
    """Resolve groups, add order, match collectives and transfers, and prove that the job ends.

    Raises `InputError` with every problem found.
    """
    report = BindingReport()
    if not any(len(table) for table in tables.values()):
        what = "the traces hold no node"
        raise InputError(Problem(str(source), what, "give traces of a job that does something"))
    graphs, actions = _ranks_alone(tables, options, report)
    resolution = _resolve(tables, actions, source, options)
    rows = {
        rank: _rank_rows(table, actions[rank], graphs[rank], resolution, report)
        for rank, table in tables.items()
    }
    instances = _match(rows, resolution, options)
    instance_of_row = _instances_of_rows(tables, instances)
    bound = {
        rank: _bound(own, actions[rank], graphs[rank], instance_of_row[rank], options, report)
        for rank, own in rows.items()
    }
    ranks = tuple(sorted(tables))
    workload = Workload(str(source), ranks, bound, resolution.groups, instances, report)
    workload = _renumbered(workload, execution_order(workload))
    report.count("jobs_without_communication", int(not instances))
    warn(report)
    return workload


def _ranks_alone(
    tables: Mapping[int, TraceTable], options: BindingOptions, report: BindingReport
) -> tuple[dict[int, RankGraph], dict[int, RowActions]]:
    """Graph and actions of every rank by itself."""
    graphs: dict[int, RankGraph] = {}
    actions: dict[int, RowActions] = {}
    problems: list[Problem] = []
    for rank, table in tables.items():
        count_table(table, report)
        actions[rank] = row_actions(table, options)
        problems += actions[rank].problems
        graph = rank_graph(table)
        if isinstance(graph, Problem):
            problems.append(graph)
            continue
        graphs[rank] = graph
        count_rank(graph, actions[rank], report)
        if options.strict:
            problems += _strict_problems(table, graph)
    if problems:
        raise InputError(*problems)
    return graphs, actions


def _strict_problems(table: TraceTable, graph: RankGraph) -> list[Problem]:
    found: list[str] = []
    if graph.first_dangling is not None:
        row, missing = graph.first_dangling
        first = f"first: {table.describe(row)} on node {missing}"
        found.append(f"dependencies on nodes that are not in the file: {graph.dangling} ({first})")
    if graph.duplicate_ids:
        found.append(f"nodes with the id of an earlier node: {graph.duplicate_ids}")
    remedy = "correct the trace, or leave out --strict to have them dropped and counted"
    return [Problem(str(table.path), what, remedy) for what in found]


def _resolve(
    tables: Mapping[int, TraceTable],
    actions: Mapping[int, RowActions],
    source: Path,
    options: BindingOptions,
) -> GroupResolution:
    used: dict[int, list[str | None]] = {}
    for rank, table in tables.items():
        indices = np.unique(table.group[actions[rank].action == Action.COLLECTIVE])
        used[rank] = [None if index < 0 else table.groups[index] for index in indices]
    return resolve_groups(
        tables,
        used,
        source=source,
        group_file=options.group_file,
        world_group=options.world_group,
    )


def _rank_rows(
    table: TraceTable,
    actions: RowActions,
    graph: RankGraph,
    resolution: GroupResolution,
    report: BindingReport,
) -> RankRows:
    """Rows of a rank with unique groups; a collective of a single rank does nothing."""
    unique = list(resolution.groups)
    # Index -1, a row without a group, takes the last element.
    by_index = np.full(len(table.groups) + 1, -1, np.int64)
    for name, unique_name in resolution.names.get(table.rank, {}).items():
        by_index[-1 if name is None else table.groups.index(name)] = unique.index(unique_name)
    collective = actions.action == Action.COLLECTIVE
    group = np.where(collective, by_index[table.group], -1)
    alone = np.array([len(ranks) == 1 for ranks in resolution.groups.values()] or [False])
    single = collective & alone[group]
    report.count("single_rank_collectives", int(np.count_nonzero(single)))
    report.count("collectives_without_group", int(np.count_nonzero(collective & (table.group < 0))))
    actions.action[single] = Action.NONE
    return RankRows(table, actions.action, graph.order, unique, np.where(single, -1, group))


def _match(
    rows: Mapping[int, RankRows], resolution: GroupResolution, options: BindingOptions
) -> list[Instance]:
    several = {name: ranks for name, ranks in resolution.groups.items() if len(ranks) > 1}
    collectives, problems = match_collectives(rows, several, options.collective_order)
    transfers, transfer_problems = match_transfers(rows, len(collectives))
    problems += transfer_problems
    if problems:
        raise InputError(*problems)
    return collectives + transfers


def _instances_of_rows(
    tables: Mapping[int, TraceTable], instances: Sequence[Instance]
) -> dict[int, npt.NDArray[np.uint32]]:
    of_row = {rank: np.full(len(table), NO_INSTANCE, np.uint32) for rank, table in tables.items()}
    for instance in instances:
        for rank, row in zip(instance.ranks, instance.rows, strict=True):
            of_row[rank][row] = instance.id
    return of_row


def _bound(
    rows: RankRows,
    actions: RowActions,
    graph: RankGraph,
    instance: npt.NDArray[np.uint32],
    options: BindingOptions,
    report: BindingReport,
) -> BoundTrace:
    edges = _with_order(rows, graph.edges, options, report)
    idle_ps = _idle_ps(rows.table, rows.action, options, report)
    parent_offsets, parents = to_parents(edges, len(rows.table))
    return BoundTrace(
        table=rows.table,
        action=rows.action,
        duration_ps=actions.duration_ps + idle_ps,
        idle_ps=idle_ps,
        lane=actions.lane,
        lanes=actions.lanes,
        instance=instance,
        order=graph.order,
        parent_offsets=parent_offsets,
        parents=parents,
    )


def _with_order(
    rows: RankRows, edges: Edges, options: BindingOptions, report: BindingReport
) -> Edges:
    """The trace's edges and those that streams and communicators add."""
    count = len(rows.table)
    if options.stream_order:
        added = stream_order(rows.table, rows.order).without(edges, count)
        report.count("stream_order_edges_added", len(added))
        edges = edges.joined(added)
    if options.collective_order == "communicator":
        added = communicator_order(rows.order, rows.action, rows.group).without(edges, count)
        report.count("communicator_order_edges_added", len(added))
        edges = edges.joined(added)
    return edges


def _idle_ps(
    table: TraceTable,
    action: npt.NDArray[np.uint8],
    options: BindingOptions,
    report: BindingReport,
) -> npt.NDArray[np.uint64]:
    idle_us = idle_before_us(table)
    if idle_us is None:
        report.count("ranks_with_unknown_idle_time")
        return np.zeros(len(table), np.uint64)
    idle_us[action != Action.DELAY] = 0
    kept = options.idle == "keep"
    report.count(f"idle_{'kept' if kept else 'dropped'}_ns", int(idle_us.sum()) * 1000)
    return idle_us.astype(np.uint64) * _PS_PER_US * np.uint64(kept)


def _renumbered(workload: Workload, order: npt.NDArray[np.int64]) -> Workload:
    """The same workload with instances numbered in the order of the dry execution."""
    new_id = np.full(len(order) + 1, NO_INSTANCE, np.uint32)
    new_id[order] = np.arange(len(order))
    instances = [replace(workload.instances[old], id=new) for new, old in enumerate(order.tolist())]
    bound = {
        rank: replace(own, instance=new_id[np.minimum(own.instance, len(order))])
        for rank, own in workload.bound.items()
    }
    return replace(workload, bound=bound, instances=instances)

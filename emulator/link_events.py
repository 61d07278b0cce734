"""The engine's `events` of a job: the operations that a moment of the trace stands for."""

from collections.abc import Iterator
from fnmatch import fnmatchcase
from typing import Any

import numpy as np
import polars as pl
from numpy.typing import NDArray

from dataplane.errors import InputError, Problem
from emulator.lab import LoadedLab
from emulator.lab.events import CollectiveMoment, LinkEvent, NodeMoment, changes, links_of
from traffic_profiles.compilation import CompiledJob
from traffic_profiles.program import Program
from traffic_profiles.workload import Workload

__all__ = ["check_events", "event_config"]


class _NoMomentError(Exception):
    """A moment that the job doesn't have: key, what is wrong, and the remedy."""

    def __init__(self, key: str, what: str, remedy: str) -> None:
        super().__init__(what)
        self.finding = (key, what, remedy)


def event_config(
    loaded: LoadedLab, workload: Workload, compiled: CompiledJob
) -> list[dict[str, Any]]:
    """The lab's events for this job; raises `InputError` for moments that the job doesn't have."""
    problems, events = [], []
    for position, event in enumerate(loaded.lab.events):
        try:
            trigger = _trigger(event, workload, compiled)
        except _NoMomentError as error:
            key, what, remedy = error.finding
            place = f"events.{position}.{key}"
            problems.append(Problem(str(loaded.path), what, remedy, place))
            continue
        links = links_of(event, loaded.fabric)
        events.append({"links": links, "trigger": trigger, "changes": changes(event)})
    if problems:
        raise InputError(*problems)
    return events


def check_events(loaded: LoadedLab, *, is_real: bool) -> None:
    """Raise `InputError` for events that a run cannot have: links of a real network aren't ours."""
    what, remedy = "would change a link of a real network", "leave it out, or use predict"
    problems = [
        Problem(str(loaded.path), what, remedy, f"events.{position}")
        for position in range(len(loaded.lab.events) if is_real else 0)
    ]
    if problems:
        raise InputError(*problems)


def _trigger(event: LinkEvent, workload: Workload, compiled: CompiledJob) -> dict[str, Any]:
    if event.at_node is not None:
        return _of_node(event.at_node, workload, compiled)
    if event.at_collective is not None:
        return _of_collective(event.at_collective, compiled)
    return {"kind": "time", "at_ps": (event.at_ns or 0) * 1000}


def _of_node(moment: NodeMoment, workload: Workload, compiled: CompiledJob) -> dict[str, Any]:
    program = _program(moment.rank, compiled)
    rows = np.flatnonzero(workload.tables[moment.rank].id == moment.node)
    if not len(rows):
        what = f"is {moment.node}, which is no node of rank {moment.rank}'s trace"
        raise _NoMomentError("at_node.node", what, "`rankwire trace show` lists the ids")
    length = compiled.ops_per_iteration[moment.rank]
    iterations = len(program) // max(length, 1)
    if moment.iteration >= iterations:
        what = f"is {moment.iteration}, and there are {iterations}"
        raise _NoMomentError("at_node.iteration", what, "count from 0, or give more --iterations")
    of_turn = np.arange(len(program)) // length == moment.iteration
    chosen = np.flatnonzero(of_turn & np.isin(program.row, rows))
    return _operations(moment.moment, [(program, chosen)])


def _of_collective(moment: CollectiveMoment, compiled: CompiledJob) -> dict[str, Any]:
    numbers = list(_matching(moment, compiled.instances))
    if moment.index >= len(numbers):
        what = f"is {moment.index}, and {len(numbers)} collectives match"
        raise _NoMomentError("at_collective.index", what, "count from 0 over all iterations")
    number = numbers[moment.index]
    chosen = [(p, np.flatnonzero(p.instance == number)) for p in compiled.programs]
    return _operations(moment.moment, [(p, ops) for p, ops in chosen if len(ops)])


def _matching(moment: CollectiveMoment, instances: pl.DataFrame) -> Iterator[int]:
    """Numbers of the instances that are meant."""
    patterns = (moment.kind, moment.group, moment.label)
    for number, *names in instances.select("instance", "kind", "group", "label").iter_rows():
        if all(fnmatchcase(str(name), glob) for name, glob in zip(names, patterns, strict=True)):
            yield int(number)


def _program(rank: int, compiled: CompiledJob) -> Program:
    for program in compiled.programs:
        if program.rank == rank:
            return program
    remedy = f"give 0 to {len(compiled.programs) - 1}"
    raise _NoMomentError("at_node.rank", f"is {rank}, which the job doesn't have", remedy)


def _operations(moment: str, chosen: list[tuple[Program, NDArray[np.int64]]]) -> dict[str, Any]:
    """The start of the first, or the end of the last of some operations."""
    is_start = moment == "start"
    operations = [
        {"rank": program.rank, "op": int(op)}
        for program, ops in chosen
        for op in (_first(program, ops) if is_start else _last(program, ops))
    ]
    return {"kind": "first_start" if is_start else "last_end", "operations": operations}


def _first(program: Program, ops: NDArray[np.int64]) -> NDArray[np.int64]:
    """Those that wait for none of the others: the first to start is among them."""
    inside = np.zeros(len(program), dtype=bool)
    inside[ops] = True
    waits = [
        bool(inside[program.deps[program.dep_offsets[op] : program.dep_offsets[op + 1]]].any())
        for op in ops
    ]
    first: NDArray[np.int64] = ops[~np.array(waits, dtype=bool)]
    return first


def _last(program: Program, ops: NDArray[np.int64]) -> NDArray[np.int64]:
    """Those that none of the others waits for: the last to end is among them."""
    is_awaited = np.zeros(len(program), dtype=bool)
    for op in ops:
        is_awaited[program.deps[program.dep_offsets[op] : program.dep_offsets[op + 1]]] = True
    last: NDArray[np.int64] = ops[~is_awaited[ops]]
    return last

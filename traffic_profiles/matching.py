"""Which rows of different ranks are one collective or one transfer.

Node ids mean nothing across ranks. Collectives of a group match in issue order, and every member
must issue the same sequence of kind and size; a send meets a receive in order for each source,
destination and tag.
"""

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from dataplane.errors import Problem
from traffic_profiles.binding_options import CollectiveOrder
from traffic_profiles.chakra.node_types import CollectiveType
from traffic_profiles.chakra.table import TraceTable
from traffic_profiles.workload import KINDS, Action, Instance

__all__ = ["RankRows", "match_collectives", "match_transfers"]

_GATHERED = ("all_gather", "gather")
_PROBLEMS_AT_MOST = 20
_RANKS_SHOWN = 8


@dataclass(frozen=True, slots=True, eq=False)
class RankRows:
    """What matching needs to know of one rank; n rows."""

    table: TraceTable
    action: npt.NDArray[np.uint8]
    order: npt.NDArray[np.uint32]
    group_names: Sequence[str]
    """Unique names of groups."""
    group: npt.NDArray[np.int64]
    """Index into `group_names` of each collective row, -1 for others."""

    def rows_with(self, action: Action) -> npt.NDArray[np.int64]:
        """Rows with an action, in issue order."""
        rows = self.order.astype(np.int64)
        chosen: npt.NDArray[np.int64] = rows[self.action[rows] == action]
        return chosen


def match_collectives(
    ranks: Mapping[int, RankRows],
    groups: Mapping[str, tuple[int, ...]],
    collective_order: CollectiveOrder,
) -> tuple[list[Instance], list[Problem]]:
    """Collective instances of all groups, and one problem for each group that does not agree.

    With `communicator` the sequences must be equal; with `dependencies` the n-th collective of a
    kind and size matches the n-th of the same on the other ranks.
    """
    sequences = {rank: _sequences(rows) for rank, rows in ranks.items()}
    instances: list[Instance] = []
    problems: list[Problem] = []
    for name, members in groups.items():
        rows = [sequences[rank].get(name, np.zeros(0, np.int64)) for rank in members]
        tables = [ranks[rank].table for rank in members]
        if collective_order == "dependencies":
            rows = [_by_signature(*item) for item in zip(tables, rows, strict=True)]
        problem = _disagreement(name, tables, rows)
        if problem:
            problems.append(problem)
        else:
            instances += _instances(name, tables, rows, len(instances))
    return instances, problems[:_PROBLEMS_AT_MOST]


def _sequences(rank: RankRows) -> dict[str, npt.NDArray[np.int64]]:
    """Group name -> rows of its collectives in issue order."""
    rows = rank.rows_with(Action.COLLECTIVE)
    return {
        rank.group_names[index]: rows[rank.group[rows] == index]
        for index in np.unique(rank.group[rows])
    }


def _signature(table: TraceTable, rows: npt.NDArray[np.int64]) -> npt.NDArray[np.int64]:
    """Kind and size of each collective, `int64[rows, 2]`."""
    kind = table.comm_type[rows].astype(np.int64)
    kind[kind == CollectiveType.REDUCE_SCATTER_BLOCK] = CollectiveType.REDUCE_SCATTER
    return np.stack([kind, np.maximum(table.comm_size[rows], 0)], axis=1)


def _by_signature(table: TraceTable, rows: npt.NDArray[np.int64]) -> npt.NDArray[np.int64]:
    signature = _signature(table, rows)
    return rows[np.lexsort((signature[:, 1], signature[:, 0]))]


def _disagreement(
    name: str, tables: Sequence[TraceTable], rows: Sequence[npt.NDArray[np.int64]]
) -> Problem | None:
    """Compare every member with the first one; the first difference is the problem."""
    first, first_rows = tables[0], rows[0]
    expected = _signature(first, first_rows)
    for table, own_rows in zip(tables[1:], rows[1:], strict=True):
        found = _signature(table, own_rows)
        shared = min(len(expected), len(found))
        differs = np.flatnonzero((expected[:shared] != found[:shared]).any(axis=1))
        if not len(differs) and len(expected) == len(found):
            continue
        at = int(differs[0]) if len(differs) else shared
        what = (
            f"the ranks of process group '{name}' do not issue the same collectives: number "
            f"{at + 1} is {_told(first, first_rows, at)}, but {_told(table, own_rows, at)}"
        )
        remedy = (
            "give traces of the same iterations of all ranks of the group; if only the order "
            "differs, say --collective-order dependencies"
        )
        return Problem(str(table.path), what, remedy, place=f"rank {table.rank}")
    return None


def _told(table: TraceTable, rows: npt.NDArray[np.int64], at: int) -> str:
    if at >= len(rows):
        return f"missing on rank {table.rank}, which issues {len(rows)}"
    row = int(rows[at])
    kind, size = _signature(table, rows[at : at + 1])[0]
    return f"{KINDS[kind]} of {size} bytes on {table.describe(row)}"


def _instances(
    name: str,
    tables: Sequence[TraceTable],
    rows: Sequence[npt.NDArray[np.int64]],
    first_id: int,
) -> list[Instance]:
    ranks = tuple(table.rank for table in tables)
    signatures = _signature(tables[0], rows[0])
    instances = []
    for index, member_rows in enumerate(zip(*(own.tolist() for own in rows), strict=True)):
        kind, comm_size = KINDS[signatures[index, 0]], int(signatures[index, 1])
        instances.append(
            Instance(
                id=first_id + index,
                kind=kind,
                group=name,
                ranks=ranks,
                rows=member_rows,
                comm_size=comm_size,
                size_bytes=comm_size * (len(ranks) if kind in _GATHERED else 1),
                label=tables[0].name(member_rows[0]),
            )
        )
    return instances


@dataclass(frozen=True, slots=True)
class _Transfer:
    """One side of a transfer."""

    table: TraceTable
    row: int
    size_bytes: int


_Channel = tuple[int, int, int]
"""Source rank, destination rank, tag."""


def match_transfers(
    ranks: Mapping[int, RankRows], first_id: int
) -> tuple[list[Instance], list[Problem]]:
    """Send-receive instances, and one problem for each channel that does not agree."""
    problems: list[Problem] = []
    sends: defaultdict[_Channel, list[_Transfer]] = defaultdict(list)
    receives: defaultdict[_Channel, list[_Transfer]] = defaultdict(list)
    for rank, own in ranks.items():
        table = own.table
        for row in own.rows_with(Action.SEND).tolist():
            channel = (rank, int(table.comm_dst[row]), int(table.comm_tag[row]))
            sends[channel].append(_Transfer(table, row, _size(table, row)))
            problems += _bad_peer(table, row, int(table.comm_src[row]), channel[1], ranks)
        for row in own.rows_with(Action.RECEIVE).tolist():
            channel = (int(table.comm_src[row]), rank, int(table.comm_tag[row]))
            receives[channel].append(_Transfer(table, row, _size(table, row)))
            problems += _bad_peer(table, row, int(table.comm_dst[row]), channel[0], ranks)
    if problems:
        return [], problems[:_PROBLEMS_AT_MOST]
    instances: list[Instance] = []
    for channel in dict.fromkeys([*sends, *receives]):
        pairs = (sends.get(channel, []), receives.get(channel, []))
        problem = _channel_problem(channel, *pairs)
        if problem:
            problems.append(problem)
        else:
            instances += _send_receives(channel, *pairs, first_id + len(instances))
    return instances, problems[:_PROBLEMS_AT_MOST]


def _size(table: TraceTable, row: int) -> int:
    size = int(table.comm_size[row])
    return size if size >= 0 else int(table.tensor_size[row])


def _bad_peer(
    table: TraceTable, row: int, own: int, peer: int, ranks: Iterable[int]
) -> list[Problem]:
    """A peer without a trace, a transfer to itself, or one that names another rank as its own."""
    if peer not in ranks:
        what = f"'{table.name(row)}' has peer rank {peer}, which has no trace"
    elif peer == table.rank:
        what = f"'{table.name(row)}' has its own rank as its peer"
    elif own not in (-1, table.rank):
        what = f"'{table.name(row)}' says that it is issued by rank {own}"
    else:
        return []
    place = f"rank {table.rank} row {row} node {int(table.id[row])}"
    return [Problem(str(table.path), what, "comm_src and comm_dst are global ranks", place)]


def _channel_problem(
    channel: _Channel, sends: Sequence[_Transfer], receives: Sequence[_Transfer]
) -> Problem | None:
    source, destination, tag = channel
    between = f"from rank {source} to rank {destination} with tag {tag}"
    remedy = "every send needs one receive of the same size, in the same order for each tag"
    for send, receive in zip(sends, receives, strict=False):
        if send.size_bytes != receive.size_bytes:
            what = (
                f"a transfer {between} has two sizes: {send.size_bytes} bytes sent by "
                f"{send.table.describe(send.row)}, {receive.size_bytes} bytes received by "
                f"{receive.table.describe(receive.row)}"
            )
            return Problem(str(receive.table.path), what, remedy)
    if len(sends) == len(receives):
        return None
    shared = min(len(sends), len(receives))
    left = (sends if len(sends) > shared else receives)[shared]
    what = (
        f"{len(sends)} sends and {len(receives)} receives {between}: "
        f"{left.table.describe(left.row)} of {left.size_bytes} bytes has no counterpart"
    )
    return Problem(str(left.table.path), what, remedy)


def _send_receives(
    channel: _Channel, sends: Sequence[_Transfer], receives: Sequence[_Transfer], first_id: int
) -> list[Instance]:
    return [
        Instance(
            id=first_id + index,
            kind="send_recv",
            group="",
            ranks=channel[:2],
            rows=(send.row, receive.row),
            comm_size=send.size_bytes,
            size_bytes=send.size_bytes,
            label=send.table.name(send.row),
        )
        for index, (send, receive) in enumerate(zip(sends, receives, strict=True))
    ]

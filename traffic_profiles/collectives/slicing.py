"""Cuts the messages of a schedule into slices over channels, as NCCL sends them.

A message is shared out to channels, the share of each goes in slices, and what forwards bytes waits
for the slices with these bytes alone. Knows no algorithm: any schedule can be cut.
"""

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from traffic_profiles.collectives.blocks import block_offset, block_sizes
from traffic_profiles.collectives.schedule import Ints, Messages, Schedule, ScheduleBuilder
from traffic_profiles.program import OpKind

__all__ = ["Slicing", "cut_message", "sliced"]

BATCH_PAIRS = 1 << 22
"""Pairs of slices that are compared at once."""

Bools = npt.NDArray[np.bool_]


@dataclass(frozen=True, slots=True)
class Slicing:
    """How messages are cut; numbers are at least 1."""

    channels: int = 1
    """Channels that share a message."""
    slice_bytes: int = 1 << 62
    """Most bytes of a slice."""
    least_share_bytes: int = 1
    """A message takes fewer channels rather than giving one of them less than this."""


def cut_message(size_bytes: int, slicing: Slicing) -> Ints:
    """Offset, size and channel of a message's slices: `int64[3, slices]`.

    The first slice of every channel comes first, then the second of every channel, and so on.
    Shares differ by a byte at most. A share's last slice may be shorter; there is no slice without
    bytes, unless the message has none.
    """
    if size_bytes == 0:
        return np.zeros((3, 1), np.int64)
    channels = min(slicing.channels, max(1, size_bytes // slicing.least_share_bytes))
    share = block_sizes(size_bytes, channels)
    most = min(slicing.slice_bytes, size_bytes)
    start = np.arange(-(-int(share.max()) // most))[:, None] * most
    size = np.clip(share - start, 0, most)
    channel = np.arange(channels)
    offset = block_offset(size_bytes, channels, channel) + start
    columns = np.stack([offset, size, np.broadcast_to(channel, size.shape)])
    return columns[:, size > 0]


@dataclass(frozen=True, slots=True, eq=False)
class Slices:
    """The slices of every operation of a schedule; a JOIN has one, without bytes."""

    first: Ints
    """`int64[o]`, where an operation's slices are in the other arrays."""
    count: Ints
    """`int64[o]`, how many it has."""
    number: Ints
    """`int64[slices]`, operation in the new schedule."""
    offset: Ints
    """`int64[slices]`, first byte of the logical buffer."""
    size: Ints
    """`int64[slices]`, bytes."""

    def of(self, operations: Ints) -> tuple[Ints, Ints]:
        """All slices of some operations, and the index of the operation of each."""
        count = self.count[operations]
        owner = np.repeat(np.arange(len(operations)), count)
        return np.repeat(self.first[operations] - np.cumsum(count) + count, count) + np.arange(
            len(owner)
        ), owner


def sliced(schedule: Schedule, slicing: Slicing, buffer_bytes: int, *, forwards: bool) -> Schedule:
    """Cut every message of a schedule.

    `buffer_bytes` is the length of the logical buffer. With `forwards`, messages wait for the bytes
    that they carry: a slice waits for the slices with its bytes, or for all if there is none.
    Without, each slice waits for all.
    """
    builder = ScheduleBuilder(schedule.ranks)
    slices = cut_all(builder, schedule, slicing)
    waiting, dependency = schedule.edge_op, schedule.edge_dependency
    carries = forwards & (schedule.size_bytes[waiting] > 0) & (schedule.size_bytes[dependency] > 0)
    alike = (
        carries
        & (schedule.offset_bytes[waiting] == schedule.offset_bytes[dependency])
        & (schedule.size_bytes[waiting] == schedule.size_bytes[dependency])
    )
    builder.after(
        slices.number[slices.of(waiting[alike])[0]], slices.number[slices.of(dependency[alike])[0]]
    )
    alone, owner = slices.of(waiting[~carries])
    late, behind = [alone], [dependency[~carries][owner]]
    other = carries & ~alike
    for ops, dependencies in batches(slices, waiting[other], dependency[other]):
        missing, everything = connect(builder, slices, ops, dependencies, buffer_bytes)
        late.append(missing)
        behind.append(everything)
    wait_for_all(builder, schedule, slices, np.concatenate(late), np.concatenate(behind))
    return builder.build(keep_empty=True)


def cut_all(builder: ScheduleBuilder, schedule: Schedule, slicing: Slicing) -> Slices:
    """Add the slices of all messages, and the JOINs, to a new schedule."""
    sends = np.flatnonzero(schedule.kind == OpKind.SEND)
    joins = np.flatnonzero(schedule.kind == OpKind.JOIN)
    sizes, shape = np.unique(schedule.size_bytes[sends], return_inverse=True)
    cuts = [cut_message(int(size), slicing) for size in sizes]
    lengths = np.array([each.shape[1] for each in cuts], np.int64)
    first_cut = np.cumsum(lengths) - lengths
    count = lengths[shape]
    owner = np.repeat(np.arange(len(sends)), count)
    first = np.cumsum(count) - count
    cut = first_cut[shape][owner] + np.arange(len(owner)) - first[owner]
    offset, size, channel = np.concatenate([np.empty((3, 0), np.int64), *cuts], axis=1)[:, cut]
    own = sends[owner]
    offset = offset + schedule.offset_bytes[own]
    messages: Messages = builder.messages(
        schedule.position[own],
        schedule.peer[own],
        size,
        offset,
        reduces=schedule.reduces[own],
        channel=channel,
    )
    gates = builder.joins(schedule.position[joins])
    none = np.zeros(len(joins), np.int64)
    slices = Slices(
        first=np.zeros(len(schedule), np.int64),
        count=np.ones(len(schedule), np.int64),
        number=np.concatenate([messages.sends, messages.receives, gates]),
        offset=np.concatenate([offset, offset, none]),
        size=np.concatenate([size, size, none]),
    )
    receives = schedule.partner[sends]
    slices.first[sends], slices.first[receives] = first, first + len(owner)
    slices.first[joins] = 2 * len(owner) + np.arange(len(joins))
    slices.count[sends] = slices.count[receives] = count
    return slices


def batches(slices: Slices, waiting: Ints, dependency: Ints) -> Iterator[tuple[Ints, Ints]]:
    """Cut edges into runs with a bounded number of pairs of slices."""
    pairs = np.cumsum(slices.count[waiting] * slices.count[dependency])
    cuts = np.flatnonzero(np.diff(pairs // BATCH_PAIRS)) + 1
    yield from zip(np.split(waiting, cuts), np.split(dependency, cuts), strict=True)


def connect(
    builder: ScheduleBuilder, slices: Slices, waiting: Ints, dependency: Ints, buffer_bytes: int
) -> tuple[Ints, Ints]:
    """Let slices wait for those with common bytes; the slices without, and what they wait for.

    The buffer is taken as a circle: a message may go on at its beginning.
    """
    late, edge = slices.of(waiting)
    early, of_late = slices.of(dependency[edge])
    begin, end = slices.offset[late][of_late], slices.offset[early]
    common: Bools = ((end - begin) % buffer_bytes < slices.size[late][of_late]) | (
        (begin - end) % buffer_bytes < slices.size[early]
    )
    builder.after(slices.number[late[of_late[common]]], slices.number[early[common]])
    lonely = np.ones(len(late), np.bool_)
    lonely[of_late[common]] = False
    return late[lonely], dependency[edge[lonely]]


def wait_for_all(
    builder: ScheduleBuilder, schedule: Schedule, slices: Slices, waiting: Ints, dependency: Ints
) -> None:
    """Let slices wait for whole operations, through a JOIN where these have several slices."""
    single = slices.count[dependency] == 1
    builder.after(slices.number[waiting[single]], slices.number[slices.first[dependency[single]]])
    cut, gate = np.unique(dependency[~single], return_inverse=True)
    gates = builder.joins(schedule.position[cut])
    members, owner = slices.of(cut)
    builder.after(gates[owner], slices.number[members])
    builder.after(slices.number[waiting[~single]], gates[gate])

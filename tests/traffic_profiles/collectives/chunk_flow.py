"""Plays a schedule in a random legal order and tracks what every byte of every rank holds.

A byte holds how often each rank's contribution is in it: `int[n]`. Data takes effect when a
receive completes. A send that waits for nothing reads the rank's input; any other reads the rank's
buffer at a random moment between its start and the arrival.
"""

from collections import defaultdict
from random import Random

import numpy as np

from traffic_profiles.collectives.schedule import Schedule
from traffic_profiles.program import OpKind


class Play:
    """One execution of a schedule; `buffers` holds one `int[size, ranks]` per position."""

    def __init__(self, schedule: Schedule, buffers: list[np.ndarray], seed: int) -> None:
        self.schedule = schedule
        self.buffers = buffers
        self.inputs = [buffer.copy() for buffer in buffers]
        self.arrivals: list[tuple[int, int, np.ndarray]] = []
        """(source, destination, indices of the carried bytes) of each receive, in order."""
        self.random = Random(seed)  # noqa: S311
        self.waiting = np.bincount(schedule.edge_op, minlength=len(schedule)).tolist()
        self.successors: defaultdict[int, list[int]] = defaultdict(list)
        pairs = zip(schedule.edge_op.tolist(), schedule.edge_dependency.tolist(), strict=True)
        for op, dependency in pairs:
            assert schedule.position[op] == schedule.position[dependency], "an edge crosses ranks"
            self.successors[dependency].append(op)
        self.unblocked = [count == 0 for count in self.waiting]
        self.started: set[int] = set()
        self.arrived: set[int] = set()
        self.content: dict[int, np.ndarray] = {}
        self.events = [(self.start, op) for op, free in enumerate(self.unblocked) if free]
        self.done = 0

    def run(self) -> "Play":
        """Execute everything; fails if something never becomes ready."""
        while self.events:
            event, op = self.events.pop(self.random.randrange(len(self.events)))
            event(op)
        assert self.done == len(self.schedule), "operations that never complete"
        return self

    def start(self, op: int) -> None:
        """All dependencies of the operation are done."""
        self.started.add(op)
        kind = self.schedule.kind[op]
        if kind == OpKind.JOIN:
            self.complete(op)
        elif kind == OpKind.SEND:
            if self.unblocked[op]:
                self.content[op] = self.carried(self.inputs, op)
            elif self.random.random() < 0.5:
                self.content[op] = self.carried(self.buffers, op)
            self.events.append((self.arrive, op))
        elif op in self.arrived:
            self.events.append((self.receive, op))

    def arrive(self, op: int) -> None:
        """The message of a SEND has arrived and is acknowledged."""
        if op not in self.content:
            self.content[op] = self.carried(self.buffers, op)
        receive = int(self.schedule.partner[op])
        self.arrived.add(receive)
        if receive in self.started:
            self.events.append((self.receive, receive))
        self.complete(op)

    def receive(self, op: int) -> None:
        """A RECV that was started and whose message has arrived takes effect."""
        s, index = self.schedule, self.indices(op)
        content = self.content[int(s.partner[op])]
        self.arrivals.append((int(s.peer[op]), int(s.position[op]), index))
        target = self.buffers[int(s.position[op])]
        target[index] = content + target[index] if s.reduces[op] else content
        self.complete(op)

    def complete(self, op: int) -> None:
        """Release what waited for the operation."""
        self.done += 1
        for successor in self.successors[op]:
            self.waiting[successor] -= 1
            if self.waiting[successor] == 0:
                self.events.append((self.start, successor))

    def indices(self, op: int) -> np.ndarray:
        """Bytes of the buffer that an operation carries."""
        first, size = int(self.schedule.offset_bytes[op]), int(self.schedule.size_bytes[op])
        return (first + np.arange(size)) % max(1, len(self.buffers[0]))

    def carried(self, buffers: list[np.ndarray], op: int) -> np.ndarray:
        """What a SEND reads."""
        return buffers[int(self.schedule.position[op])][self.indices(op)].copy()


def own_everywhere(ranks: int, size: int) -> list[np.ndarray]:
    """Every rank contributes to every byte: the input of a reduction."""
    buffers = [np.zeros((size, ranks), int) for _ in range(ranks)]
    for rank, buffer in enumerate(buffers):
        buffer[:, rank] = 1
    return buffers


def own_block(ranks: int, size: int) -> list[np.ndarray]:
    """Every rank holds its own block only: the input of a gathering."""
    buffers = [np.zeros((size, ranks), int) for _ in range(ranks)]
    for rank, buffer in enumerate(buffers):
        buffer[block(ranks, size, rank), rank] = 1
    return buffers


def block(ranks: int, size: int, index: int) -> slice:
    """Bytes of a block: the first `size % ranks` blocks are one byte larger."""
    lengths = [size // ranks + (number < size % ranks) for number in range(ranks)]
    return slice(sum(lengths[:index]), sum(lengths[: index + 1]))

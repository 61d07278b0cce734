"""Plays programs in a random legal order, on a network without limits."""

from collections import defaultdict
from random import Random

from traffic_profiles.program import OpKind, Program

Op = tuple[int, int]
"""(rank, operation)."""


class ProgramPlay:
    """One execution of programs; `finished` lists the operations in order of completion."""

    def __init__(self, programs: list[Program], seed: int = 0) -> None:
        self.programs = {program.rank: program for program in programs}
        self.random = Random(seed)  # noqa: S311
        self.waiting: dict[Op, int] = {}
        self.successors: defaultdict[Op, list[Op]] = defaultdict(list)
        self.ready: list[Op] = []
        self.finished: list[Op] = []
        self.running: set[Op] = set()
        self.arrived: set[Op] = set()
        for program in programs:
            self.load(program)

    def load(self, program: Program) -> None:
        """Take in a program."""
        offsets, deps = program.dep_offsets.tolist(), program.deps.tolist()
        for op in range(len(program)):
            own = (program.rank, op)
            needed = deps[offsets[op] : offsets[op + 1]]
            self.waiting[own] = len(needed)
            for dependency in needed:
                self.successors[program.rank, dependency].append(own)
            if not needed:
                self.ready.append(own)

    def run(self) -> "ProgramPlay":
        """Execute what can be executed."""
        while self.ready:
            self.start(self.ready.pop(self.random.randrange(len(self.ready))))
        return self

    def start(self, op: Op) -> None:
        """All dependencies are done."""
        self.running.add(op)
        program = self.programs[op[0]]
        kind, counterpart = program.kind[op[1]], self.counterpart(op)
        if kind == OpKind.RECV:
            if op in self.arrived:
                self.complete(op)
            return
        if kind == OpKind.SEND:
            assert counterpart not in self.arrived, "two sends for one receive"
            self.arrived.add(counterpart)
            if counterpart in self.running:
                self.complete(counterpart)
        self.complete(op)

    def complete(self, op: Op) -> None:
        """Release what waited for the operation."""
        self.finished.append(op)
        for successor in self.successors[op]:
            self.waiting[successor] -= 1
            if self.waiting[successor] == 0:
                self.ready.append(successor)

    def counterpart(self, op: Op) -> Op:
        """Find the other side of a SEND or RECV."""
        program = self.programs[op[0]]
        return int(program.peer[op[1]]), int(program.peer_op[op[1]])

    @property
    def complete_sets(self) -> bool:
        """Whether every operation of every program has been executed."""
        return len(self.finished) == sum(len(program) for program in self.programs.values())


def check_pairs(programs: list[Program]) -> None:
    """Every message has one SEND and one RECV that name each other and agree on its size."""
    by_rank = {program.rank: program for program in programs}
    for program in programs:
        for op in range(len(program)):
            if program.kind[op] > OpKind.RECV:
                assert program.peer[op] == program.rank
                assert program.size_bytes[op] == 0
                continue
            peer, other = by_rank[int(program.peer[op])], int(program.peer_op[op])
            assert {int(program.kind[op]), int(peer.kind[other])} == {OpKind.SEND, OpKind.RECV}
            assert (peer.peer[other], peer.peer_op[other]) == (program.rank, op)
            assert peer.size_bytes[other] == program.size_bytes[op]
            assert peer.instance[other] == program.instance[op]

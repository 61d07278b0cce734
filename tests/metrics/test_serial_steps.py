"""The serial steps behind the ideal time, against the dependencies of the real algorithms."""

import numpy as np
import pytest

from metrics.analysis.bandwidth import serial_steps
from traffic_profiles.collectives import ALGORITHMS, Parameters, Schedule, expand

CASES = [(kind, name) for kind, algorithms in ALGORITHMS.items() for name in algorithms]
EXACT = {"ring", "halving_doubling", "recursive_doubling", "direct", "dissemination", "linear"}


def longest_chain(schedule: Schedule) -> int:
    """Most messages that follow one another, each sent after the one before has arrived."""
    waits: list[list[tuple[int, int]]] = [[] for _ in range(len(schedule))]
    for op, dependency in zip(schedule.edge_op, schedule.edge_dependency, strict=True):
        waits[op].append((int(dependency), 0))
    for op in np.flatnonzero(schedule.kind == 1):
        waits[op].append((int(schedule.partner[op]), 1))
    length: dict[int, int] = {}

    def measure(op: int) -> int:
        if op not in length:
            length[op] = max((measure(before) + step for before, step in waits[op]), default=0)
        return length[op]

    return max((measure(op) for op in range(len(schedule))), default=0)


@pytest.mark.parametrize(("kind", "algorithm"), CASES)
@pytest.mark.parametrize("ranks", [2, 3, 5, 6, 8, 13, 16])
def test_no_algorithm_needs_fewer_serial_steps(kind: str, algorithm: str, ranks: int) -> None:
    """The count is a lower bound for every algorithm; where it is exact, it is exact."""
    if kind == "send_recv":
        ranks = 2
    schedule = expand(kind, algorithm, ranks, 64 * ranks, Parameters(window=64))
    steps, chain = serial_steps(kind, algorithm, ranks), longest_chain(schedule)
    assert steps <= chain
    if algorithm in EXACT:
        assert steps == chain

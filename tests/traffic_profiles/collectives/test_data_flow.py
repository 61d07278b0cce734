"""Every algorithm computes what its collective promises, in any legal order of events.

Group sizes 1 to 17, powers of two or not; sizes from nothing to more than the ranks, divisible or
not. This is the proof that the dependencies are sufficient and that no byte is lost or doubled.
"""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.traffic_profiles.collectives.chunk_flow import Play, block, own_block, own_everywhere
from traffic_profiles.collectives import ALGORITHMS, Parameters, SplitMatrix, expand

RANKS = st.integers(1, 17)
SIZES = st.integers(0, 70)
SEEDS = st.integers(0, 2**32 - 1)
PARAMETERS = st.builds(
    Parameters, window=st.integers(1, 20), chunk_bytes=st.none() | st.integers(1, 20)
)
MATRICES = st.integers(1, 9).flatmap(
    lambda n: st.lists(
        st.lists(st.sampled_from([0.0, 0.1, 1.0, 3.5]), min_size=n, max_size=n),
        min_size=n,
        max_size=n,
    )
)


def algorithms(kind: str) -> pytest.MarkDecorator:
    return pytest.mark.parametrize("algorithm", ALGORITHMS[kind])


@algorithms("all_reduce")
@settings(max_examples=60, deadline=None)
@given(ranks=RANKS, size=SIZES, seed=SEEDS, parameters=PARAMETERS)
def test_all_reduce_sums_every_rank_once_in_every_byte(algorithm, ranks, size, seed, parameters):
    schedule = expand("all_reduce", algorithm, ranks, size, parameters)
    play = Play(schedule, own_everywhere(ranks, size), seed).run()
    for buffer in play.buffers:
        assert (buffer == 1).all()


@algorithms("reduce_scatter")
@settings(max_examples=60, deadline=None)
@given(ranks=RANKS, size=SIZES, seed=SEEDS)
def test_reduce_scatter_leaves_each_rank_its_block_of_the_sum(algorithm, ranks, size, seed):
    schedule = expand("reduce_scatter", algorithm, ranks, size)
    play = Play(schedule, own_everywhere(ranks, size), seed).run()
    for rank, buffer in enumerate(play.buffers):
        assert (buffer[block(ranks, size, rank)] == 1).all()


@algorithms("all_gather")
@settings(max_examples=60, deadline=None)
@given(ranks=RANKS, size=SIZES, seed=SEEDS)
def test_all_gather_brings_every_block_to_every_rank(algorithm, ranks, size, seed):
    schedule = expand("all_gather", algorithm, ranks, size)
    play = Play(schedule, own_block(ranks, size), seed).run()
    whole = sum(own_block(ranks, size))
    for buffer in play.buffers:
        assert np.array_equal(buffer, whole)


@algorithms("all_to_all")
@settings(max_examples=60, deadline=None)
@given(ranks=RANKS, size=SIZES, seed=SEEDS, parameters=PARAMETERS)
def test_all_to_all_moves_block_j_to_rank_j(algorithm, ranks, size, seed, parameters):
    schedule = expand("all_to_all", algorithm, ranks, size, parameters)
    play = Play(schedule, own_everywhere(ranks, size), seed).run()
    moved = {(source, target): list(index) for source, target, index in play.arrivals}
    for source in range(ranks):
        for target in range(ranks):
            part = block(ranks, size, target)
            expected = list(range(part.start, part.stop)) if source != target else []
            assert moved.get((source, target), []) == expected


@algorithms("all_to_all")
@settings(max_examples=60, deadline=None)
@given(rows=MATRICES, size=SIZES, seed=SEEDS, window=st.integers(1, 9))
def test_all_to_all_follows_a_split_matrix_to_the_byte(algorithm, rows, size, seed, window):
    """Shares are met within one byte at each cut, and the group's bytes are n times the size."""
    weights, ranks = np.array(rows), len(rows)
    parameters = Parameters(window=window, split_matrix=SplitMatrix(weights))
    schedule = expand("all_to_all", algorithm, ranks, size, parameters)
    play = Play(schedule, own_everywhere(ranks, ranks * size), seed).run()
    moved = {(source, target): len(index) for source, target, index in play.arrivals}
    total = weights.sum() or 1.0
    for source in range(ranks):
        for target in range(ranks):
            if source != target:
                share = weights[source, target] / total * ranks * size
                assert abs(moved.get((source, target), 0) - share) <= 2
    assert all(weights[pair] > 0 for pair in moved)


@algorithms("broadcast")
@settings(max_examples=60, deadline=None)
@given(ranks=RANKS, size=SIZES, seed=SEEDS, chunk=st.none() | st.integers(1, 20), data=st.data())
def test_broadcast_brings_the_root_s_buffer_to_all(algorithm, ranks, size, seed, chunk, data):
    root = data.draw(st.integers(0, ranks - 1))
    schedule = expand("broadcast", algorithm, ranks, size, Parameters(root=root, chunk_bytes=chunk))
    buffers = own_everywhere(ranks, size)
    for buffer in Play(schedule, buffers, seed).run().buffers:
        assert np.array_equal(buffer, own_everywhere(ranks, size)[root])


@algorithms("reduce")
@settings(max_examples=60, deadline=None)
@given(ranks=RANKS, size=SIZES, seed=SEEDS, chunk=st.none() | st.integers(1, 20), data=st.data())
def test_reduce_leaves_the_whole_sum_at_the_root(algorithm, ranks, size, seed, chunk, data):
    root = data.draw(st.integers(0, ranks - 1))
    schedule = expand("reduce", algorithm, ranks, size, Parameters(root=root, chunk_bytes=chunk))
    play = Play(schedule, own_everywhere(ranks, size), seed).run()
    assert (play.buffers[root] == 1).all()


@settings(max_examples=60, deadline=None)
@given(ranks=RANKS, size=SIZES, seed=SEEDS, data=st.data())
def test_gather_brings_every_block_to_the_root(ranks, size, seed, data):
    root = data.draw(st.integers(0, ranks - 1))
    schedule = expand("gather", "linear", ranks, size, Parameters(root=root))
    play = Play(schedule, own_block(ranks, size), seed).run()
    assert np.array_equal(play.buffers[root], sum(own_block(ranks, size)))


@settings(max_examples=60, deadline=None)
@given(ranks=RANKS, size=SIZES, seed=SEEDS, data=st.data())
def test_scatter_brings_each_rank_its_block_of_the_root_s_buffer(ranks, size, seed, data):
    root = data.draw(st.integers(0, ranks - 1))
    schedule = expand("scatter", "linear", ranks, size, Parameters(root=root))
    play = Play(schedule, own_everywhere(ranks, size), seed).run()
    for rank, buffer in enumerate(play.buffers):
        assert (buffer[block(ranks, size, rank), root] == 1).all()


@given(ranks=RANKS)
def test_nobody_leaves_a_barrier_before_all_have_come(ranks):
    """With one rank that never begins, no other rank's last receive can complete."""
    schedule = expand("barrier", "dissemination", ranks, 0)
    for late in range(ranks):
        reached = ranks_that_finish_without(schedule, late)
        assert reached == set()


def ranks_that_finish_without(schedule, late: int) -> set[int]:
    """Positions that complete all their operations although `late` does nothing."""
    done, before = set(), -1
    while len(done) != before:
        before = len(done)
        for op in range(len(schedule)):
            needed = set(schedule.edge_dependency[schedule.edge_op == op].tolist())
            if schedule.kind[op] == 1:
                needed.add(int(schedule.partner[op]))
            if schedule.position[op] != late and needed <= done:
                done.add(op)
    everyone = set(range(schedule.ranks)) - {late}
    return {p for p in everyone if all(op in done for op in np.flatnonzero(schedule.position == p))}


@given(size=st.integers(0, 5000))
def test_a_transfer_is_one_message_even_when_it_is_empty(size):
    schedule = expand("send_recv", "direct", 2, size)
    assert schedule.kind.tolist() == [0, 1]
    assert schedule.size_bytes.tolist() == [size, size]

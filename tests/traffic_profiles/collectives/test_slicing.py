"""Slices lose no byte and end as whole messages do; a slice waits for its bytes alone."""

from collections import defaultdict

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.traffic_profiles.collectives.chunk_flow import Play, block, own_block, own_everywhere
from traffic_profiles.collectives import ALGORITHMS, Parameters, expand
from traffic_profiles.collectives.choice import AlgorithmRule, AlgorithmTable
from traffic_profiles.collectives.slicing import Slicing, cut_message
from traffic_profiles.program import OpKind

KIB, MIB = 1 << 10, 1 << 20
SLICINGS = st.builds(
    Slicing,
    channels=st.integers(1, 4),
    slice_bytes=st.integers(1, 9),
    least_share_bytes=st.integers(1, 9),
)
PARAMETERS = st.builds(
    Parameters,
    window=st.integers(1, 5),
    chunk_bytes=st.none() | st.integers(1, 20),
    slicing=SLICINGS,
)
ALL = [(kind, name) for kind in ALGORITHMS for name in ALGORITHMS[kind]]
flows = given(
    ranks=st.integers(2, 9),
    size=st.integers(0, 70),
    seed=st.integers(0, 2**32 - 1),
    parameters=PARAMETERS,
)


def test_slices_are_the_first_of_every_channel_then_the_second():
    offset, size, channel = cut_message(10, Slicing(channels=2, slice_bytes=3))
    assert offset.tolist() == [0, 5, 3, 8]
    assert size.tolist() == [3, 3, 2, 2]
    assert channel.tolist() == [0, 1, 0, 1]


def test_a_small_message_takes_fewer_channels():
    slicing = Slicing(channels=4, slice_bytes=100, least_share_bytes=10)
    assert cut_message(29, slicing)[1].tolist() == [15, 14]
    assert cut_message(3, slicing)[1].tolist() == [3]
    assert cut_message(0, slicing)[1].tolist() == [0]


@given(size=st.integers(0, 500), slicing=SLICINGS)
def test_slices_cover_a_message_once(size, slicing):
    offset, length, _ = cut_message(size, slicing)
    covered = np.concatenate(
        [np.arange(first, first + count) for first, count in zip(offset, length, strict=True)]
    )
    assert sorted(covered) == list(range(size))
    assert length.max() <= slicing.slice_bytes


@pytest.mark.parametrize(("kind", "algorithm"), ALL)
@settings(max_examples=30, deadline=None)
@given(ranks=st.integers(2, 9), size=st.integers(0, 70), parameters=PARAMETERS)
def test_the_bytes_between_two_ranks_stay_the_same(kind, algorithm, ranks, size, parameters):
    ranks = 2 if kind == "send_recv" else ranks
    whole = Parameters(window=parameters.window, chunk_bytes=parameters.chunk_bytes)
    found = [traffic(expand(kind, algorithm, ranks, size, each)) for each in (whole, parameters)]
    assert found[0] == found[1]


def traffic(schedule) -> dict[tuple[int, int], int]:
    """Bytes from each position to each other."""
    sent: defaultdict[tuple[int, int], int] = defaultdict(int)
    for op in np.flatnonzero(schedule.kind == OpKind.SEND):
        sent[schedule.position[op], schedule.peer[op]] += int(schedule.size_bytes[op])
    return dict(sent)


@pytest.mark.parametrize("algorithm", ALGORITHMS["all_reduce"])
@settings(max_examples=60, deadline=None)
@flows
def test_all_reduce_sums_every_rank_once_in_every_byte(algorithm, ranks, size, seed, parameters):
    schedule = expand("all_reduce", algorithm, ranks, size, parameters)
    for buffer in Play(schedule, own_everywhere(ranks, size), seed).run().buffers:
        assert (buffer == 1).all()


@pytest.mark.parametrize("algorithm", ALGORITHMS["reduce_scatter"])
@settings(max_examples=60, deadline=None)
@flows
def test_reduce_scatter_leaves_each_rank_its_block(algorithm, ranks, size, seed, parameters):
    schedule = expand("reduce_scatter", algorithm, ranks, size, parameters)
    play = Play(schedule, own_everywhere(ranks, size), seed).run()
    for rank, buffer in enumerate(play.buffers):
        assert (buffer[block(ranks, size, rank)] == 1).all()


@pytest.mark.parametrize("algorithm", ALGORITHMS["all_gather"])
@settings(max_examples=60, deadline=None)
@flows
def test_all_gather_brings_every_block_to_every_rank(algorithm, ranks, size, seed, parameters):
    schedule = expand("all_gather", algorithm, ranks, size, parameters)
    whole = sum(own_block(ranks, size))
    for buffer in Play(schedule, own_block(ranks, size), seed).run().buffers:
        assert np.array_equal(buffer, whole)


@pytest.mark.parametrize("algorithm", ALGORITHMS["all_to_all"])
@settings(max_examples=60, deadline=None)
@flows
def test_all_to_all_moves_block_j_to_rank_j(algorithm, ranks, size, seed, parameters):
    schedule = expand("all_to_all", algorithm, ranks, size, parameters)
    moved: defaultdict[tuple[int, int], list[int]] = defaultdict(list)
    for source, target, index in Play(schedule, own_everywhere(ranks, size), seed).run().arrivals:
        moved[source, target] += index.tolist()
    for source in range(ranks):
        for target in set(range(ranks)) - {source}:
            part = block(ranks, size, target)
            assert sorted(moved[source, target]) == list(range(part.start, part.stop))


@pytest.mark.parametrize("algorithm", ALGORITHMS["broadcast"])
@settings(max_examples=60, deadline=None)
@flows
def test_broadcast_and_reduce_end_as_they_do_whole(algorithm, ranks, size, seed, parameters):
    schedule = expand("broadcast", algorithm, ranks, size, parameters)
    for buffer in Play(schedule, own_everywhere(ranks, size), seed).run().buffers:
        assert np.array_equal(buffer, own_everywhere(ranks, size)[0])
    schedule = expand("reduce", algorithm, ranks, size, parameters)
    assert (Play(schedule, own_everywhere(ranks, size), seed).run().buffers[0] == 1).all()


def test_a_slice_of_a_ring_waits_for_its_own_bytes_alone():
    """8 ranks, 64 MiB: steps of 8 MiB over 2 channels are 8 slices of 1 MiB, 14 steps."""
    parameters = Parameters(slicing=Slicing(channels=2, slice_bytes=MIB))
    schedule = expand("all_reduce", "ring", 8, 64 * MIB, parameters)
    sends = schedule.kind == OpKind.SEND
    assert sends.sum() == 8 * 14 * 8
    assert set(schedule.size_bytes[sends]) == {MIB}
    waits = np.bincount(schedule.edge_op, minlength=len(schedule))[sends]
    assert sorted(set(waits)) == [0, 1]
    assert (waits == 0).sum() == 8 * 8
    for column in (schedule.offset_bytes, schedule.size_bytes, schedule.channel):
        assert np.array_equal(column[schedule.edge_op], column[schedule.edge_dependency])


def test_the_slices_of_a_windowed_step_wait_for_all_of_the_step_before():
    parameters = Parameters(window=1, slicing=Slicing(slice_bytes=1))
    schedule = expand("all_to_all", "pairwise", 4, 16, parameters)
    assert len(Play(schedule, own_everywhere(4, 16), 0).run().arrivals) == 4 * 3 * 4
    joins = np.flatnonzero(schedule.kind == OpKind.JOIN)
    assert (np.bincount(schedule.edge_op, minlength=len(schedule))[joins] == 4).all()


def test_messages_are_cut_as_nccl_does_where_no_rule_says_otherwise():
    rules = [
        AlgorithmRule("all_gather", "ring", slice_bytes=5),
        AlgorithmRule("all_to_all", "linear", channels=7),
    ]
    table = AlgorithmTable(rules, nccl_channels=2)

    def slicing(kind: str) -> Slicing | None:
        return table.choose(kind, MIB, 8, "dp", "node").parameters.slicing

    assert slicing("all_reduce") == Slicing(2, MIB, 32 * KIB)
    assert slicing("broadcast") == Slicing(2, 512 * KIB, 32 * KIB)
    assert slicing("send_recv") == Slicing(2, 128 * KIB, 32 * KIB)
    assert slicing("all_gather") == Slicing(2, 5, 32 * KIB)
    assert slicing("all_to_all") == Slicing(7, 128 * KIB, 32 * KIB)
    plain = AlgorithmTable(rules)
    assert plain.choose("all_reduce", MIB, 8, "dp", "node").parameters.slicing is None


def test_a_gibibyte_in_slices_is_expanded_in_moments():
    """A ring, and an algorithm whose messages have other bounds than those they wait for."""
    parameters = Parameters(slicing=Slicing(channels=8, slice_bytes=MIB))
    for algorithm in ("ring", "halving_doubling"):
        schedule = expand("all_reduce", algorithm, 16, 1 << 30, parameters)
        assert schedule.bytes_by_position(OpKind.SEND).sum() == 30 << 30

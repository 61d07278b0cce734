"""Published byte and step counts, speed, and what an expansion refuses."""

import time

import numpy as np
import pytest

from traffic_profiles.collectives import ALGORITHMS, ExpansionError, Parameters, expand
from traffic_profiles.collectives.all_reduce import tree_parents
from traffic_profiles.collectives.blocks import pieces
from traffic_profiles.collectives.expansion import check_conservation
from traffic_profiles.program import OpKind

GIB = 1 << 30
SIZES = [(2, 1), (3, 1000), (4, 999), (6, 5), (7, 12_345), (8, 1001), (16, 999_983)]
"""Ranks and sizes that they do not divide."""
GROUPS = [kind for kind in ALGORITHMS if kind != "send_recv"]


def sizes_sent_by(schedule, position: int) -> list[int]:
    own = slice(schedule.first_op[position], schedule.first_op[position + 1])
    return schedule.size_bytes[own][schedule.kind[own] == OpKind.SEND].tolist()


def test_ring_all_reduce_of_a_gibibyte_on_8_ranks_is_14_steps_of_128_mebibytes():
    schedule = expand("all_reduce", "ring", 8, GIB)
    assert sizes_sent_by(schedule, 3) == [134_217_728] * 14
    assert schedule.bytes_by_position(OpKind.SEND).tolist() == [1_879_048_192] * 8


def test_halving_doubling_of_a_gibibyte_on_8_ranks_halves_and_doubles():
    schedule = expand("all_reduce", "halving_doubling", 8, GIB)
    halves = [536_870_912, 268_435_456, 134_217_728]
    assert sizes_sent_by(schedule, 5) == halves + halves[::-1]


@pytest.mark.parametrize("ranks", range(2, 40))
def test_a_rank_has_at_most_two_children_in_a_tree_and_is_inner_in_one_tree_only(ranks):
    children = [np.bincount(p[p >= 0], minlength=ranks) for p in tree_parents(ranks)]
    assert all(count.max() <= 2 for count in children)
    assert sum(int(p.min()) == -1 and np.sum(p < 0) == 1 for p in tree_parents(ranks)) == 2
    sent = expand("all_reduce", "double_binary_tree", ranks, 1000).bytes_by_position(OpKind.SEND)
    assert sent.max() <= 2000 + 500


@pytest.mark.parametrize(
    ("kind", "algorithm", "factor"),
    [(k, a, 2 if k == "all_reduce" else 1) for k in GROUPS for a in ALGORITHMS[k]],
)
@pytest.mark.parametrize(("ranks", "size"), SIZES)
def test_t14_the_group_sends_what_the_table_of_collectives_says(
    kind, algorithm, factor, ranks, size
):
    """All but gather, scatter, one-shot and messages alone: (n-1) S, twice for all-reduce."""
    schedule = expand(kind, algorithm, ranks, size)
    sent = int(schedule.bytes_by_position(OpKind.SEND).sum())
    assert int(schedule.bytes_by_position(OpKind.RECV).sum()) == sent
    if kind in ("gather", "scatter"):
        assert sent == size - -(-size // ranks)
    elif kind == "barrier":
        assert sent == 0
    elif algorithm == "one_shot":
        assert sent == ranks * (ranks - 1) * size
    else:
        assert sent == factor * (ranks - 1) * size


@pytest.mark.parametrize("kind", [k for k in ALGORITHMS if k not in ("barrier", "send_recv")])
def test_no_bytes_and_one_rank_make_no_traffic(kind):
    for algorithm in ALGORITHMS[kind]:
        assert np.sum(expand(kind, algorithm, 9, 0).kind != OpKind.JOIN) == 0
        assert len(expand(kind, algorithm, 1, 1000)) == 0


def test_fewer_bytes_than_ranks_make_no_empty_messages():
    schedule = expand("all_reduce", "ring", 8, 3)
    assert (schedule.size_bytes == 1).all()
    assert schedule.bytes_by_position(OpKind.SEND).sum() == 2 * 7 * 3


def test_pairwise_keeps_no_more_steps_under_way_than_its_window():
    schedule = expand("all_to_all", "pairwise", 6, 600, Parameters(window=2))
    sends = np.flatnonzero((schedule.position == 0) & (schedule.kind == OpKind.SEND))
    waits = [schedule.edge_dependency[schedule.edge_op == op].tolist() for op in sends]
    assert [len(w) for w in waits] == [0, 0, 2, 2, 2]
    assert waits[2][0] == sends[0]


def test_all_to_all_on_256_ranks_takes_well_under_a_second():
    begin = time.perf_counter()
    schedule = expand("all_to_all", "pairwise", 256, 256 * 1024)
    assert len(schedule) == 2 * 256 * 255
    assert time.perf_counter() - begin < 1.5


def test_sizes_beyond_32_bits_are_exact():
    sent = expand("all_reduce", "ring", 2, 4_294_967_297).bytes_by_position(OpKind.SEND)
    assert sent.sum() == 2 * 4_294_967_297


def test_lost_bytes_are_an_internal_error():
    schedule = expand("all_gather", "ring", 4, 400)
    with pytest.raises(ExpansionError, match="internal error: all_gather/ring on 4 ranks"):
        check_conservation(schedule, np.full(4, 301), "all_gather/ring")


@pytest.mark.parametrize(
    ("size", "hops", "shrink", "expected"),
    [
        (0, 6, True, 1),
        (1 << 20, 6, False, 2),
        (1 << 20, 6, True, 32),
        (100_000, 6, True, 4),
        (16 << 20, 6, True, 32),
        (1 << 40, 6, True, 256),
        (1 << 40, 255, False, 1020),
    ],
)
def test_a_pipeline_has_four_pieces_per_hop_within_its_bounds(size, hops, shrink, expected):
    assert pieces(size, hops, None, shrink=shrink) == expected


def test_a_given_piece_size_holds():
    assert pieces(1000, 6, 300) == 4

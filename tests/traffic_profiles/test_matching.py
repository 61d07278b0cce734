"""Rows of different ranks that are one collective or one transfer."""

import pytest

from traffic_profiles.chakra import CollectiveType
from traffic_profiles.workload import Action

ALL_REDUCE, ALL_GATHER = CollectiveType.ALL_REDUCE, CollectiveType.ALL_GATHER


def test_collectives_match_in_issue_order_whatever_their_ids(job):
    """Ids mean nothing across ranks; the n-th of a group is the n-th everywhere."""
    made = job(2)
    made.ranks[1].compute("shifts the ids", 1)
    for builder in made.ranks:
        first = builder.collective("x", ALL_REDUCE, 8)
        builder.collective("y", ALL_REDUCE, 8, after=[first])
    workload = made.bind()
    assert [instance.rows for instance in workload.instances] == [(0, 1), (1, 2)]
    assert workload.bound[1].instance.tolist()[1:] == [0, 1]


@pytest.mark.parametrize(
    ("kind", "size_bytes"),
    [
        (CollectiveType.ALL_REDUCE, 8),
        (CollectiveType.ALL_GATHER, 32),
        (CollectiveType.GATHER, 32),
        (CollectiveType.REDUCE_SCATTER, 8),
        (CollectiveType.ALL_TO_ALL, 8),
    ],
)
def test_sizes_are_normalised_once(job, kind, size_bytes):
    """`comm_size` is a rank's input; what is gathered is as large as all inputs together."""
    made = job(4)
    for builder in made.ranks:
        builder.collective("x", kind, 8)
    (instance,) = made.bind().instances
    assert (instance.comm_size, instance.size_bytes) == (8, size_bytes)


def test_sizes_beyond_32_bits_are_kept(job):
    """4 GiB and one byte."""
    made = job(2)
    for builder in made.ranks:
        builder.collective("x", ALL_REDUCE, (1 << 32) + 1)
    assert made.bind().instances[0].size_bytes == (1 << 32) + 1


def test_a_different_size_is_refused_with_both_nodes(job):
    """Rank, row, id, name, kind and size of both sides."""
    made = job(2)
    for rank, builder in enumerate(made.ranks):
        builder.collective("first", ALL_REDUCE, 4)
        builder.collective("second", ALL_REDUCE, 8 + rank)
    message = made.refusal()
    assert "number 2 is all_reduce of 8 bytes on rank 0 row 1 node 2 'second'" in message
    assert "but all_reduce of 9 bytes on rank 1 row 1 node 2 'second'" in message


def test_a_different_kind_is_refused(job):
    """An all-gather does not meet an all-reduce."""
    made = job(2)
    made.ranks[0].collective("x", ALL_REDUCE, 8)
    made.ranks[1].collective("x", ALL_GATHER, 8)
    assert "all_gather of 8 bytes on rank 1" in made.refusal()


def test_a_collective_that_a_member_never_issues_is_refused(job):
    """It would hang the job."""
    made = job(3)
    for builder in made.ranks[:2]:
        builder.collective("x", ALL_REDUCE, 8)
    assert "missing on rank 2, which issues 0" in made.refusal()


def test_a_contrary_order_matches_by_kind_and_size_when_asked(job):
    """`--collective-order dependencies`: the n-th of the same kind and size."""
    made = job(2)
    for builder, sizes in zip(made.ranks, ((4, 8), (8, 4)), strict=True):
        for size in sizes:
            builder.collective(f"of {size}", ALL_REDUCE, size)
    assert "--collective-order dependencies" in made.refusal()
    workload = made.bind(collective_order="dependencies")
    assert sorted(instance.rows for instance in workload.instances) == [(0, 1), (1, 0)]


def test_transfers_match_first_in_first_out_for_each_tag(job):
    """Two receives with one tag stay two transfers."""
    made = job(2)
    for size in (1, 2):
        made.ranks[0].send(f"s{size}", 1, size, tag=5)
    made.ranks[0].send("other", 1, 9, tag=6)
    made.ranks[1].receive("other", 0, 9, tag=6)
    for size in (1, 2):
        made.ranks[1].receive(f"r{size}", 0, size, tag=5)
    workload = made.bind()
    matched = {(instance.rows, instance.size_bytes) for instance in workload.instances}
    assert matched == {((0, 1), 1), ((1, 2), 2), ((2, 0), 9)}
    assert workload.bound[0].action.tolist() == [Action.SEND] * 3


def test_a_send_without_a_receive_is_refused(job):
    """And the other way round."""
    made = job(2)
    made.ranks[0].send("lost", 1, 8, tag=5)
    message = made.refusal()
    assert "1 sends and 0 receives from rank 0 to rank 1 with tag 5" in message
    assert "rank 0 row 0 node 1 'lost' of 8 bytes has no counterpart" in message


def test_a_transfer_of_two_sizes_is_refused(job):
    """Both nodes and both sizes."""
    made = job(2)
    made.ranks[0].send("s", 1, 8, tag=5)
    made.ranks[1].receive("r", 0, 9, tag=5)
    message = made.refusal()
    assert "8 bytes sent by rank 0 row 0 node 1 's'" in message
    assert "9 bytes received by rank 1 row 0 node 1 'r'" in message


@pytest.mark.parametrize(
    ("peer", "expected"), [(7, "peer rank 7, which has no trace"), (0, "its own rank as its peer")]
)
def test_an_impossible_peer_is_refused(job, peer, expected):
    """Peers are global ranks of the job, other than the rank itself."""
    made = job(2)
    made.ranks[0].send("s", peer, 8, tag=5)
    assert expected in made.refusal()

"""A run that does not move is ended, and the message says who waits for whom."""

from emulator.control.messages import BlockedOperation
from emulator.control.stall import StallWatch, describe_failures, describe_stall


def test_a_run_that_does_not_move_is_stalled_after_the_limit() -> None:
    """The limit counts from the last movement."""
    watch = StallWatch(10.0, now_s=0.0)
    watch.observe(1.0, operations_done=1, bytes_delivered=0)
    watch.observe(9.0, operations_done=1, bytes_delivered=0)
    assert not watch.is_stalled(11.0)
    assert watch.is_stalled(11.1)


def test_one_byte_is_movement() -> None:
    """A long message on a slow wire is no stall."""
    watch = StallWatch(10.0, now_s=0.0)
    watch.observe(1.0, operations_done=1, bytes_delivered=0)
    watch.observe(9.0, operations_done=1, bytes_delivered=1)
    assert not watch.is_stalled(19.0)


def test_the_message_names_ranks_nodes_and_peers() -> None:
    """So that the user knows where to look."""
    blocked = [BlockedOperation(rank=3, op=12, kind="recv", peer=2, detail="received_bytes 100")]
    text = describe_stall(10, blocked, {3: "host-3", 2: "host-2"})
    assert "rank 3 on host-3 waits for rank 2 on host-2, operation 12 (received_bytes 100)" in text


def test_a_long_list_is_cut() -> None:
    """With the number of the rest."""
    blocked = [BlockedOperation(rank=0, op=op, kind="send", peer=1) for op in range(20)]
    assert describe_stall(10, blocked, {}).endswith("and 12 more")


def test_the_message_of_failed_queue_pairs_names_both_ends_and_the_reason() -> None:
    """The engine's table in words."""
    failures = {
        "rank": [3], "peer_rank": [2], "qp": [7], "op": [12], "reason": ["retry count exceeded"]
    }  # fmt: skip
    text = describe_failures(failures, [], {3: "host-3", 2: "host-2"})
    assert "1 queue pairs failed; rank 3 on host-3 to rank 2 on host-2, operation 12: retry" in text

"""Several agents' reports as one."""

import numpy as np

from emulator.control.merge import (
    NOT_DONE,
    merge_completed,
    merge_records,
    merge_snapshots,
    reported_operations,
)
from tests.emulator.control.fabrics import completed, joins


def test_counters_add_up_and_the_latest_time_counts() -> None:
    """Each counter belongs to one node, and each node to one agent."""
    merged = merge_snapshots(
        [
            {"now_ps": 5, "ops_done": 1, "links": {"tx_bytes": np.array([1, 0])}},
            {"now_ps": 9, "ops_done": 2, "links": {"tx_bytes": np.array([0, 7])}},
        ]
    )
    assert (merged["now_ps"], merged["ops_done"]) == (9, 3)
    np.testing.assert_array_equal(merged["links"]["tx_bytes"], [1, 7])


def test_tables_are_joined_in_the_order_of_one_process() -> None:
    """Operations by rank and index, whoever reported them first."""
    merged = merge_records(
        [
            {"ops": {"rank": np.array([1, 1]), "op": np.array([0, 1])}},
            {"ops": {"rank": np.array([0]), "op": np.array([0])}},
        ]
    )
    assert merged["ops"]["rank"].tolist() == [0, 1, 1]
    assert merged["ops"]["op"].tolist() == [0, 0, 1]


def test_no_report_is_an_empty_table() -> None:
    """With its columns, so that nobody needs to ask."""
    assert merge_completed([])["op"].tolist() == []


def test_progress_reports_stand_in_for_lost_records() -> None:
    """What an agent reported before it was lost is kept; the rest is not done."""
    programs = [joins(4), joins(7)]
    table = reported_operations(programs, [completed(7, [2], 55), completed(4, [0], 33)])
    assert table["rank"].tolist() == [4, 4, 4, 7, 7, 7]
    assert table["op"].tolist() == [0, 1, 2, 0, 1, 2]
    not_done = int(NOT_DONE)
    assert table["end_ps"].tolist() == [33, not_done, not_done, not_done, not_done, 55]


def test_reports_of_unknown_operations_are_ignored() -> None:
    """A hostile agent cannot write outside of its table."""
    table = reported_operations([joins(4)], [completed(4, [3, 10**6], 1), completed(9, [0], 1)])
    assert (table["end_ps"] == NOT_DONE).all()

"""Ranks get NICs in order, shuffled or as listed; too few or wrong NICs are refused."""

import pytest

from dataplane.errors import InputError
from traffic_profiles.placement import place

NICS = [f"nic{index}" for index in range(8)]


def test_ranks_take_the_nics_in_order():
    assert place([0, 1, 2], NICS) == {0: "nic0", 1: "nic1", 2: "nic2"}


def test_a_seed_shuffles_the_same_way_every_time():
    first, again = (place(range(8), NICS, shuffle_seed=5) for _ in range(2))
    assert first == again
    assert sorted(first.values()) == NICS
    assert first != place(range(8), NICS)


def test_a_list_decides_by_itself():
    assert place([0, 1], NICS, listed=["nic7", "nic3"], shuffle_seed=1) == {0: "nic7", 1: "nic3"}


def test_more_ranks_than_nics_are_refused():
    with pytest.raises(InputError, match="9 ranks but 8 NICs; give at least 9 NICs"):
        place(range(9), NICS)


def test_unknown_and_repeated_nics_are_named_together():
    with pytest.raises(InputError) as error:
        place([0, 1, 2], NICS, listed=["nic1", "nic1", "eth0"], source="lab.yaml")
    assert [problem.place for problem in error.value.problems] == ["entry 1", "entry 2"]
    assert "NIC 'nic1' already carries rank 0" in str(error.value)

"""Rules decide in order; without a rule, what NCCL would pick; bad rules are refused together."""

from pathlib import Path

import numpy as np
import pytest

from dataplane.errors import InputError
from traffic_profiles.collectives import AlgorithmRule, AlgorithmTable, Parameters
from traffic_profiles.collectives.choice import tree_limit_bytes


def chosen(table: AlgorithmTable, kind="all_reduce", size=1 << 30, ranks=8, group="dp", node="n"):
    return table.choose(kind, size, ranks, group, node)


def test_the_first_matching_rule_decides():
    table = AlgorithmTable(
        [
            AlgorithmRule("all_reduce", "direct", max_size_bytes=1000),
            AlgorithmRule("all_reduce", "halving_doubling", min_ranks=16),
            AlgorithmRule("all_reduce", "one_shot", group="tp*"),
            AlgorithmRule("all_reduce", "double_binary_tree", node="*grad*", chunk_bytes=4096),
        ]
    )
    assert chosen(table, size=1000).algorithm == "direct"
    assert chosen(table, size=1001, ranks=16).algorithm == "halving_doubling"
    assert chosen(table, size=1001, group="tp0").algorithm == "one_shot"
    assert chosen(table, node="sync grads").parameters == Parameters(chunk_bytes=4096)
    assert chosen(table).algorithm == "ring"


def test_a_rule_for_many_kinds_skips_those_without_its_algorithm():
    table = AlgorithmTable([AlgorithmRule("*", "direct")])
    assert chosen(table, kind="all_gather").algorithm == "direct"
    assert chosen(table, kind="all_to_all").algorithm == "pairwise"


@pytest.mark.parametrize(("ranks", "mebibytes"), [(4, 1.9), (8, 12.6), (16, 49)])
def test_trees_carry_all_reduces_that_latency_dominates(ranks, mebibytes):
    """The crossing grows with the ranks: the ring's hops grow with n, the trees' with log n."""
    limit = tree_limit_bytes(ranks)
    assert limit / 2**20 == pytest.approx(mebibytes, rel=0.05)
    table = AlgorithmTable()
    assert chosen(table, size=limit, ranks=ranks).algorithm == "double_binary_tree"
    assert chosen(table, size=limit + 1, ranks=ranks).algorithm == "ring"


def test_the_guide_shows_the_crossings_of_the_model():
    lines = (
        (Path(__file__).parents[3] / "docs/collectives.md").read_text(encoding="utf-8").splitlines()
    )
    ranks, sizes = (
        [cell.strip() for cell in line.strip("|").split("|")][1:]
        for line in lines
        if line.startswith(("| n |", "| S in MiB |"))
    )
    for count, mebibytes in zip(ranks, sizes, strict=True):
        assert tree_limit_bytes(int(count)) / 2**20 == pytest.approx(float(mebibytes), abs=0.06)


def test_two_ranks_always_take_the_ring():
    assert chosen(AlgorithmTable(), size=8, ranks=2).algorithm == "ring"


def test_every_bad_rule_is_named_with_what_is_right():
    with pytest.raises(InputError) as error:
        AlgorithmTable(
            [
                AlgorithmRule("allreduce", "ring"),
                AlgorithmRule("all_gather", "tree"),
                AlgorithmRule("all_to_all", "pairwise", window=0),
                AlgorithmRule("all_reduce", "ring", min_ranks=9, max_ranks=8),
                AlgorithmRule("all_reduce", "ring", split_matrix_file=Path("m.csv")),
            ]
        )
    places = [problem.place for problem in error.value.problems]
    assert places == [f"algorithms[{index}]" for index in range(5)]
    assert "one of direct, recursive_doubling, ring" in str(error.value)


@pytest.mark.parametrize("text", ["1,2\n3,4\n", "[[1, 2], [3, 4]]"])
def test_a_split_matrix_is_csv_or_json(tmp_path, text):
    file = tmp_path / "matrix"
    file.write_text(text)
    table = AlgorithmTable([AlgorithmRule("all_to_all", "linear", split_matrix_file=file)])
    matrix = chosen(table, kind="all_to_all", ranks=2).parameters.split_matrix
    assert matrix is not None
    assert np.array_equal(matrix.weights, [[1, 2], [3, 4]])


def test_a_split_matrix_for_other_ranks_names_the_group(tmp_path):
    file = tmp_path / "matrix.csv"
    file.write_text("1,2\n3,4\n")
    table = AlgorithmTable([AlgorithmRule("all_to_all", "linear", split_matrix_file=file)])
    with pytest.raises(InputError, match="for 2 ranks, group 'ep' has 8"):
        chosen(table, kind="all_to_all", group="ep")


@pytest.mark.parametrize("text", ["", "1,2\n3\n", "1,x\n3,4", "1,-2\n3,4", "[1, 2]", "[[1], [nan"])
def test_a_matrix_that_is_none_is_refused(tmp_path, text):
    file = tmp_path / "matrix.csv"
    file.write_text(text)
    with pytest.raises(InputError, match=r"matrix\.csv"):
        AlgorithmTable([AlgorithmRule("all_to_all", "linear", split_matrix_file=file)])

"""Which ranks a process group's name means."""

import json

import pytest

from dataplane.errors import InputError
from traffic_profiles.chakra import CollectiveType
from traffic_profiles.groups import read_group_file

ALL_REDUCE = CollectiveType.ALL_REDUCE


def reducing(job, groups_of_ranks):
    """A job in which each rank all-reduces once in each of its groups."""
    made = job(len(groups_of_ranks))
    for builder, groups in zip(made.ranks, groups_of_ranks, strict=True):
        for group in groups:
            builder.collective("ar", ALL_REDUCE, 8, group=group)
    return made


def test_no_name_is_the_whole_world(job):
    """Collectives without a group run over all ranks, and are counted."""
    workload = reducing(job, [[""], [""], [""]]).bind()
    assert workload.groups == {"world": (0, 1, 2)}
    assert workload.report.counts["collectives_without_group"] == 3


def test_zero_is_the_whole_world_unless_it_is_declared(job, tmp_path):
    """Users do declare a group `0` over some ranks."""
    two_of_three = reducing(job, [["0"], ["0"], []])
    assert "missing on rank 2" in two_of_three.refusal()
    file = tmp_path / "groups.json"
    file.write_text('{"0": [0, 1]}')
    assert two_of_three.bind(group_file=file).groups == {"0": (0, 1)}


def test_a_group_that_nothing_declares_is_refused_with_the_remedies(job):
    """The message names the users of the group and both ways out."""
    message = reducing(job, [["7"], ["7"]]).refusal()
    assert "process group '7' (used by ranks 0, 1) is not declared" in message
    assert "--group-file FILE" in message
    assert "--world-group" in message


def test_a_file_beside_the_traces_that_declares_the_group_is_suggested(job, tmp_path):
    """It is never used by itself: a wrong group would give wrong numbers."""
    (tmp_path / "other.json").write_text('{"8": [0, 1]}')
    (tmp_path / "groups.json").write_text('{"7": [0, 1]}')
    message = reducing(job, [["7"], ["7"]]).refusal()
    assert f"--group-file {tmp_path / 'groups.json'} looks right" in message
    assert "other.json" not in message


def test_an_undeclared_group_is_the_world_when_the_user_says_so(job):
    """`--world-group`."""
    assert reducing(job, [["7"], ["7"]]).bind(world_group=True).groups == {"7": (0, 1)}


def test_groups_declared_in_the_trace_are_used(job):
    """The process_group:init node; an empty list of ranks is the whole world."""
    made = job(3)
    for rank, builder in enumerate(made.ranks):
        builder.process_groups({"w": [], "pair": [0, 2]}, world_size=3)
        builder.collective("ar", ALL_REDUCE, 8, group="w")
        if rank != 1:
            builder.collective("ar", ALL_REDUCE, 8, group="pair")
    assert made.bind().groups == {"w": (0, 1, 2), "pair": (0, 2)}


def test_one_name_may_mean_other_ranks_elsewhere(job):
    """Names are local to a process: two groups called `tp` stay two groups."""
    made = job(4)
    for rank, builder in enumerate(made.ranks):
        first = rank // 2 * 2
        builder.process_groups({"tp": [first, first + 1]}, world_size=4)
        builder.collective("ar", ALL_REDUCE, 8, group="tp")
    workload = made.bind()
    assert sorted(workload.groups.values()) == [(0, 1), (2, 3)]
    assert len(workload.instances) == 2


def test_traces_of_a_part_of_the_job_are_refused(job):
    """A group of all ranks says how many there were."""
    made = job(2)
    for builder in made.ranks:
        builder.process_groups({"w": []}, world_size=4)
        builder.collective("ar", ALL_REDUCE, 8, group="w")
    assert "process group 'w' has ranks without a trace: [2, 3]" in made.refusal()


def test_a_cut_declaration_asks_for_a_group_file(job):
    """PyTorch cuts the text when there are many ranks."""
    made = job(2)
    for builder in made.ranks:
        builder.add("## process_group:init ##", 1, input_values='[\'[{"pg_name": "1", "ranks": [0')
        builder.collective("ar", ALL_REDUCE, 8, group="1")
    assert "cut or damaged; declare the groups with --group-file" in made.refusal()


@pytest.mark.parametrize(
    ("ranks", "expected"),
    [
        ([0, 5], "ranks without a trace: [5]"),
        ([0, 0], "lists a rank twice"),
        ([1], "rank 0 uses process group 'g', of which it is no member"),
    ],
)
def test_impossible_groups_are_refused(job, tmp_path, ranks, expected):
    """Ranks of a group exist, once, and hold its users."""
    file = tmp_path / "groups.json"
    file.write_text(json.dumps({"g": ranks}))
    assert expected in reducing(job, [["g"], []]).refusal(group_file=file)


def test_a_group_of_one_rank_makes_no_traffic(job, tmp_path):
    """Its collectives are done at once, and counted."""
    file = tmp_path / "groups.json"
    file.write_text('{"a": [0], "b": [1]}')
    workload = reducing(job, [["a"], ["b"]]).bind(group_file=file)
    assert not workload.instances
    assert workload.report.counts["single_rank_collectives"] == 2


def test_group_files_may_have_comments(tmp_path):
    """`//` to the end of the line, but not within a name."""
    file = tmp_path / "groups.json"
    file.write_text('{ // tensor parallel\n"a//b": [0, 1], // pair\n"2": [1]}')
    assert read_group_file(file) == {"a//b": (0, 1), "2": (1,)}


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ('{"1": [0, }', "line 1 column 11"),
        ('{"1": "0-3"}', "does not map names to lists of ranks"),
        ('{"1": [0], "1": [1]}', "group '1' is declared twice"),
        ("[]", "does not map"),
    ],
)
def test_a_bad_group_file_says_where(tmp_path, text, expected):
    """With the place, as far as there is one."""
    file = tmp_path / "groups.json"
    file.write_text(text)
    with pytest.raises(InputError, match=r"groups\.json") as caught:
        read_group_file(file)
    assert expected in str(caught.value)

"""The dry execution: a job that would hang is refused before it starts."""

from traffic_profiles.chakra import CollectiveType
from traffic_profiles.validate import execution_order, validate

ALL_REDUCE = CollectiveType.ALL_REDUCE


def crossing(job):
    """Two groups of the same ranks, whose collectives depend on each other the other way round."""
    made = job(2)
    for builder, groups in zip(made.ranks, (("a", "b"), ("b", "a")), strict=True):
        builder.process_groups({"a": [], "b": []}, world_size=2)
        first = builder.collective(f"in {groups[0]}", ALL_REDUCE, 8, group=groups[0])
        builder.collective(f"in {groups[1]}", ALL_REDUCE, 8, group=groups[1], after=[first])
    return made


def test_collectives_in_contrary_order_are_a_deadlock(job):
    """The message goes round the circle: rank, node, collective, rank, node, collective."""
    message = crossing(job).refusal()
    assert "the job would deadlock, 4 nodes of ranks 0, 1 would never run" in message
    for part in ("rank 0 row 1 node 2 'in a'", "rank 1 row 1 node 2 'in b'", "of ranks 0, 1"):
        assert part in message


def test_a_circle_of_receives_before_sends_is_a_deadlock(job):
    """Each rank sends only when it has received."""
    made = job(3)
    for rank, builder in enumerate(made.ranks):
        got = builder.receive("r", (rank - 1) % 3, 8, tag=0)
        builder.send("s", (rank + 1) % 3, 8, tag=0, after=[got])
    message = made.refusal()
    assert "6 nodes of ranks 0, 1, 2 would never run" in message
    assert "send_recv" in message


def test_a_ring_that_sends_first_ends(job):
    """Sends need no receive to have been issued."""
    made = job(3)
    for rank, builder in enumerate(made.ranks):
        sent = builder.send("s", (rank + 1) % 3, 8, tag=0)
        builder.receive("r", (rank - 1) % 3, 8, tag=0, after=[sent])
    workload = made.bind()
    validate(workload)
    assert len(workload.instances) == 3


def test_instances_are_numbered_in_an_order_in_which_they_can_be_done(job):
    """A collective that another one waits for has the lower number, whatever its group."""
    made = job(2)
    for builder in made.ranks:
        builder.process_groups({"a": [], "b": []}, world_size=2)
        first = builder.collective("first", ALL_REDUCE, 8, group="b")
        builder.collective("second", ALL_REDUCE, 8, group="a", after=[first])
    workload = made.bind()
    assert [instance.label for instance in workload.instances] == ["first", "second"]
    assert execution_order(workload).tolist() == [0, 1]

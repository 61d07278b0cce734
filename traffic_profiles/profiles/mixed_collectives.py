"""All-reduces and all-to-alls of all ranks at the same time, each kind one after the other.

Two chains that know nothing of each other, on two streams and in two groups: what one kind does to
the other is the fabric's doing. Without one of the chains the other is alone.
"""

from dataclasses import dataclass

from dataplane.errors import InputError, Problem
from traffic_profiles.chakra import CollectiveType, TraceBuilder
from traffic_profiles.profiles.profile import Profile, ProfileJob, parameter

__all__ = ["MIXED_COLLECTIVES"]

FIRST_STREAM = 20


@dataclass(frozen=True, slots=True)
class MixedCollectives:
    """Parameters of the mixture."""

    all_reduces: int = parameter(8, "all-reduces, one after the other; 0 leaves them out")
    all_reduce_bytes: int = parameter(16 << 20, "bytes of each all-reduce")
    all_to_alls: int = parameter(8, "all-to-alls, one after the other; 0 leaves them out")
    all_to_all_bytes: int = parameter(16 << 20, "bytes of a rank in each all-to-all")
    gap_us: int = parameter(0, "microseconds of computation before each collective")


def build(ranks: int, _: int, given: MixedCollectives) -> ProfileJob:
    """Write both chains of every rank."""
    if given.all_reduces == 0 and given.all_to_alls == 0:
        what, remedy = "leaves out both kinds", "give all_reduces or all_to_alls"
        raise InputError(Problem("profile mixed-collectives", what, remedy, place="all_reduces"))
    traces = [TraceBuilder() for _ in range(ranks)]
    everyone = tuple(range(ranks))
    chains = (
        ("all-reduce", CollectiveType.ALL_REDUCE, given.all_reduces, given.all_reduce_bytes),
        ("all-to-all", CollectiveType.ALL_TO_ALL, given.all_to_alls, given.all_to_all_bytes),
    )
    for trace in traces:
        trace.process_groups({name: everyone for name, *_ in chains}, world_size=ranks)
        for stream, (name, kind, turns, size_bytes) in enumerate(chains, FIRST_STREAM):
            write_chain(trace, name, kind, turns, size_bytes, stream, given.gap_us)
    return ProfileJob(traces)


def write_chain(
    trace: TraceBuilder,
    name: str,
    kind: CollectiveType,
    turns: int,
    size_bytes: int,
    stream: int,
    gap_us: int,
) -> None:
    """Write one rank's collectives of a kind, one after the other."""
    last: list[int] = []
    for turn in range(turns):
        if gap_us:
            last = [trace.compute(f"{name} gap {turn}", gap_us, after=last, stream=stream + 2)]
        issue = f"{name} {turn}"
        last = [trace.collective(issue, kind, size_bytes, after=last, group=name, stream=stream)]


MIXED_COLLECTIVES = Profile(
    "mixed-collectives",
    "all-reduces and all-to-alls of all ranks at the same time",
    MixedCollectives,
    build,
)
"""Two kinds of collectives that share the fabric."""

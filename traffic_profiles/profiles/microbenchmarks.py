"""One pattern alone, repeated: a collective, an incast, a permutation."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from traffic_profiles.chakra import CollectiveType, TraceBuilder
from traffic_profiles.profiles.profile import Profile, ProfileJob, parameter

__all__ = ["ALL_GATHER", "ALL_REDUCE", "ALL_TO_ALL", "INCAST", "PERMUTATION"]


@dataclass(frozen=True, slots=True)
class Repeated:
    """Parameters of all microbenchmarks."""

    size_bytes: int = parameter(16 << 20, "bytes of the collective's input, or of each transfer")
    repeats: int = parameter(4, "how often, one after the other", minimum=1)
    gap_us: int = parameter(0, "microseconds of computation before each")


def collective(ranks: int, given: Repeated, name: str, kind: CollectiveType) -> ProfileJob:
    """Issue one collective of all ranks again and again."""
    traces = [TraceBuilder() for _ in range(ranks)]
    for trace in traces:
        trace.process_groups({"all": range(ranks)}, world_size=ranks)
        last: list[int] = []
        for turn in range(given.repeats):
            last = gap(trace, given, turn, last)
            issue = f"{name} {turn}"
            last = [trace.collective(issue, kind, given.size_bytes, after=last, group="all")]
    return ProfileJob(traces)


def gap(trace: TraceBuilder, given: Repeated, turn: int, last: list[int]) -> list[int]:
    """Compute before a repetition, if there is a gap."""
    if given.gap_us == 0:
        return last
    return [trace.compute(f"gap {turn}", given.gap_us, after=last)]


def transfers(
    ranks: int, given: Repeated, pairs: Sequence[Sequence[tuple[int, int]]]
) -> ProfileJob:
    """Send between the (source, destination) pairs of each repetition."""
    traces = [TraceBuilder() for _ in range(ranks)]
    last: list[list[int]] = [[] for _ in range(ranks)]
    for turn, ends in enumerate(pairs):
        begin = [gap(trace, given, turn, last[rank]) for rank, trace in enumerate(traces)]
        issued: list[list[int]] = [[] for _ in range(ranks)]
        for source, destination in ends:
            name, size, after = f"transfer {turn}", given.size_bytes, begin
            send = traces[source].send(name, destination, size, tag=turn, after=after[source])
            issued[source].append(send)
            receive = traces[destination].receive(
                name, source, size, tag=turn, after=after[destination]
            )
            issued[destination].append(receive)
        last = [now or before for now, before in zip(issued, begin, strict=True)]
    return ProfileJob(traces)


def build_all_reduce(ranks: int, _: int, given: Repeated) -> ProfileJob:
    """All-reduces of all ranks."""
    return collective(ranks, given, "all-reduce", CollectiveType.ALL_REDUCE)


def build_all_to_all(ranks: int, _: int, given: Repeated) -> ProfileJob:
    """All-to-alls of all ranks."""
    return collective(ranks, given, "all-to-all", CollectiveType.ALL_TO_ALL)


def build_all_gather(ranks: int, _: int, given: Repeated) -> ProfileJob:
    """All-gathers of all ranks; the size is that of one rank's shard."""
    return collective(ranks, given, "all-gather", CollectiveType.ALL_GATHER)


def build_incast(ranks: int, _: int, given: Repeated) -> ProfileJob:
    """All others send to rank 0 at once."""
    ends = [(source, 0) for source in range(1, ranks)]
    return transfers(ranks, given, [ends] * given.repeats)


def build_permutation(ranks: int, seed: int, given: Repeated) -> ProfileJob:
    """Every rank sends to one other and receives from one other; a new pairing each time."""
    random = np.random.default_rng(seed)
    pairs = []
    for _ in range(given.repeats):
        # Neighbours in a random circle: nobody sends to itself.
        circle = random.permutation(ranks).tolist()
        pairs.append(list(zip(circle, circle[1:] + circle[:1], strict=True)))
    return transfers(ranks, given, pairs)


ALL_REDUCE = Profile("all-reduce", "all-reduces of all ranks", Repeated, build_all_reduce)
"""Repeated all-reduce."""
ALL_GATHER = Profile("all-gather", "all-gathers of all ranks", Repeated, build_all_gather)
"""Repeated all-gather."""
ALL_TO_ALL = Profile("all-to-all", "all-to-alls of all ranks", Repeated, build_all_to_all)
"""Repeated all-to-all."""
INCAST = Profile("incast", "all ranks send to rank 0 at once", Repeated, build_incast)
"""Repeated incast."""
PERMUTATION = Profile(
    "permutation", "every rank sends to one other, paired by the seed", Repeated, build_permutation
)
"""Repeated random permutation."""

"""A vocabulary for tests that need a job's traces: build, write, read and bind."""

from pathlib import Path

import pytest

from dataplane.errors import InputError
from traffic_profiles.binding import bind
from traffic_profiles.binding_options import BindingOptions
from traffic_profiles.chakra import TraceBuilder, read_traces
from traffic_profiles.workload import Workload


class Job:
    """Traces of several ranks in a directory."""

    def __init__(self, directory: Path, ranks: int) -> None:
        self.directory = directory
        self.ranks = [TraceBuilder() for _ in range(ranks)]

    def write(self) -> Path:
        """Write every rank's file."""
        for rank, builder in enumerate(self.ranks):
            builder.write(self.directory / f"job.{rank}.et")
        return self.directory

    def bind(self, **options: object) -> Workload:
        """Write, read and bind."""
        tables = read_traces(self.write())
        return bind(tables, source=self.directory, options=BindingOptions(**options))

    def refusal(self, **options: object) -> str:
        """Text of the refusal that binding ends in."""
        with pytest.raises(InputError) as caught:
            self.bind(**options)
        return str(caught.value)


def edges(workload: Workload, rank: int) -> set[tuple[int, int]]:
    """(parent row, child row) of a rank's graph."""
    bound = workload.bound[rank]
    return {
        (int(parent), child)
        for child in range(len(bound.table))
        for parent in bound.parents[
            int(bound.parent_offsets[child]) : int(bound.parent_offsets[child + 1])
        ]
    }

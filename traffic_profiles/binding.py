"""Binding: from trace tables, one per rank, to a workload."""

from collections.abc import Mapping
from pathlib import Path

from traffic_profiles.binding_options import BindingOptions
from traffic_profiles.chakra.table import TraceTable
from traffic_profiles.workload import Workload

__all__ = ["bind"]


def bind(tables: Mapping[int, TraceTable], *, source: Path, options: BindingOptions) -> Workload:
    """Resolve groups, add order, match collectives and transfers.

    Raises `InputError` with every problem found.
    """
    raise NotImplementedError(source, options, tables)

"""What RDMA devices counted themselves, as one column for each of the kernel's counters."""

from collections.abc import Mapping, Sequence
from typing import Any

__all__ = ["by_counter"]


def by_counter(rows: Mapping[str, Sequence[Any]]) -> dict[str, list[int]]:
    """Return rows of (NIC, name, value) as columns by name, for `tables.counter_table`.

    Counters that did not move are left out; a NIC whose device lacks one has 0.
    """
    if not rows:
        return {}
    nics = sorted(set(rows["nic"]))
    columns: dict[str, list[int]] = {"nic": nics}
    for nic, name, value in zip(rows["nic"], rows["name"], rows["value"], strict=True):
        if value:
            columns.setdefault(name, [0] * len(nics))[nics.index(nic)] = value
    return columns if len(columns) > 1 else {}

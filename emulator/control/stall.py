"""Notices that a run does not move any more, and says who waits for whom; time is an argument."""

from collections.abc import Mapping, Sequence
from typing import Final

from emulator.control.messages import BlockedOperation

__all__ = ["DEFAULT_STALL_TIMEOUT_S", "StallWatch", "describe_stall"]

DEFAULT_STALL_TIMEOUT_S: Final = 20.0
"""Wall time without a completed operation and without a delivered byte after which a run ends."""


_NAMED_OPERATIONS: Final = 8


class StallWatch:
    """Remembers when anything moved last."""

    def __init__(self, timeout_s: float, now_s: float) -> None:
        self._timeout_s = timeout_s
        self._moved_s = now_s
        self._seen: tuple[int, int] | None = None

    def observe(self, now_s: float, *, operations_done: int, bytes_delivered: int) -> None:
        """Note the totals over all agents."""
        seen = (operations_done, bytes_delivered)
        if seen != self._seen:
            self._seen = seen
            self._moved_s = now_s

    def is_stalled(self, now_s: float) -> bool:
        """Return whether nothing has moved for the time limit."""
        return now_s - self._moved_s > self._timeout_s


def describe_stall(
    timeout_s: float, blocked: Sequence[BlockedOperation], nodes: Mapping[int, str]
) -> str:
    """Return the message of a stalled run; `nodes` names the NIC of each rank."""
    head = f"the run stalled: no operation completed and no byte arrived for {timeout_s:g} s"
    if not blocked:
        return f"{head}; no agent names a blocked operation"
    named = "; ".join(_describe(operation, nodes) for operation in blocked[:_NAMED_OPERATIONS])
    more = len(blocked) - _NAMED_OPERATIONS
    return f"{head}; {named}{f'; and {more} more' if more > 0 else ''}"


def _describe(operation: BlockedOperation, nodes: Mapping[int, str]) -> str:
    me = f"rank {operation.rank} on {nodes.get(operation.rank, '?')}"
    peer = f"rank {operation.peer} on {nodes.get(operation.peer, '?')}"
    what = {"send": f"sends to {peer}", "recv": f"waits for {peer}"}.get(
        operation.kind, f"is in a {operation.kind}"
    )
    detail = f" ({operation.detail})" if operation.detail else ""
    return f"{me} {what}, operation {operation.op}{detail}"

"""Notices that a run does not move any more, and says who waits for whom; time is an argument."""

from collections.abc import Mapping, Sequence
from typing import Any, Final

from emulator.control.messages import BlockedOperation

__all__ = ["DEFAULT_STALL_TIMEOUT_S", "StallWatch", "describe_failures", "describe_stall"]

DEFAULT_STALL_TIMEOUT_S: Final = 20.0
"""Wall time without a completed operation and without a delivered byte after which a run ends."""


_NAMED_OPERATIONS: Final = 8
_FAILURE_COLUMNS: Final = ("rank", "peer_rank", "op", "reason")
_NO_OPERATION: Final = 0xFFFFFFFF


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
    return f"{head}; {_describe_all(blocked, nodes)}"


def describe_failures(
    failures: Mapping[str, Any], blocked: Sequence[BlockedOperation], nodes: Mapping[int, str]
) -> str:
    """Return the message of a run whose queue pairs failed; `failures` is the engine's table."""
    rows = list(zip(*(failures.get(key, ()) for key in _FAILURE_COLUMNS), strict=True))
    named = [
        f"{_name(int(rank), nodes)} to {_name(int(peer), nodes)}{_sends(int(op))}: {reason}"
        for rank, peer, op, reason in rows[:_NAMED_OPERATIONS]
    ]
    more = len(rows) - len(named)
    head = f"{len(rows) or 'some'} queue pairs failed"
    cases = "".join(f"; {case}" for case in named) + (f"; and {more} more" if more else "")
    return f"{head}{cases}; {_describe_all(blocked, nodes)}"


def _sends(op: int) -> str:
    return "" if op == _NO_OPERATION else f", operation {op}"


def _describe_all(blocked: Sequence[BlockedOperation], nodes: Mapping[int, str]) -> str:
    if not blocked:
        return "no agent names a blocked operation"
    named = "; ".join(_describe(operation, nodes) for operation in blocked[:_NAMED_OPERATIONS])
    more = len(blocked) - _NAMED_OPERATIONS
    return f"{named}{f'; and {more} more' if more > 0 else ''}"


def _name(rank: int, nodes: Mapping[int, str]) -> str:
    return f"rank {rank} on {nodes.get(rank, '?')}"


def _describe(operation: BlockedOperation, nodes: Mapping[int, str]) -> str:
    me, peer = _name(operation.rank, nodes), _name(operation.peer, nodes)
    what = {"send": f"sends to {peer}", "recv": f"waits for {peer}"}.get(
        operation.kind, f"is in a {operation.kind}"
    )
    detail = f" ({operation.detail})" if operation.detail else ""
    return f"{me} {what}, operation {operation.op}{detail}"

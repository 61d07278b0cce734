"""The table of algorithms, and the one door to their expansion.

Every expansion is checked when it is made: no byte appears or vanishes.
"""

from collections.abc import Mapping
from functools import lru_cache

import numpy as np

from dataplane.errors import RankwireError
from traffic_profiles.collectives.algorithm import Algorithm, Parameters
from traffic_profiles.collectives.all_gather import ALL_GATHER
from traffic_profiles.collectives.all_reduce import ALL_REDUCE
from traffic_profiles.collectives.all_to_all import ALL_TO_ALL
from traffic_profiles.collectives.reduce_scatter import REDUCE_SCATTER
from traffic_profiles.collectives.rooted import BROADCAST, GATHER, REDUCE, SCATTER
from traffic_profiles.collectives.schedule import Schedule, ScheduleBuilder
from traffic_profiles.collectives.signals import BARRIER, SEND_RECV
from traffic_profiles.collectives.slicing import sliced
from traffic_profiles.program import OpKind

__all__ = ["ALGORITHMS", "ExpansionError", "expand"]

ALGORITHMS: Mapping[str, Mapping[str, Algorithm]] = {
    "all_reduce": ALL_REDUCE,
    "reduce_scatter": REDUCE_SCATTER,
    "all_gather": ALL_GATHER,
    "all_to_all": ALL_TO_ALL,
    "broadcast": BROADCAST,
    "reduce": REDUCE,
    "gather": GATHER,
    "scatter": SCATTER,
    "barrier": BARRIER,
    "send_recv": SEND_RECV,
}
"""Kind of collective to its algorithms by name."""


class ExpansionError(RankwireError):
    """An expansion lost or invented bytes: a defect of rankwire, never of its input."""


@lru_cache(maxsize=64)
def expand(
    kind: str, algorithm: str, ranks: int, size_bytes: int, parameters: Parameters | None = None
) -> Schedule:
    """Expand one collective on `ranks` positions; `size_bytes` is S as nccl-tests counts it.

    One rank alone has nothing to send, and no bytes make no messages (except for barrier and
    send/recv). Raises `ExpansionError` if the bytes are not those of the formula.
    """
    chosen = ALGORITHMS[kind][algorithm]
    given = parameters or Parameters()
    if ranks == 1:
        return ScheduleBuilder(1).build()
    schedule = chosen.expand(ranks, size_bytes, given)
    if given.slicing is not None:
        schedule = sliced(schedule, given.slicing, size_bytes, forwards=chosen.forwards)
    check_conservation(schedule, chosen.sent_bytes(ranks, size_bytes, given), f"{kind}/{algorithm}")
    return schedule


def check_conservation(
    schedule: Schedule, expected: np.typing.NDArray[np.int64], name: str
) -> None:
    """Compare what is sent with what is received and with the formula; raise `ExpansionError`."""
    sent = schedule.bytes_by_position(OpKind.SEND)
    received = schedule.bytes_by_position(OpKind.RECV)
    partner = schedule.partner
    matched = (
        np.array_equal(partner[partner], np.arange(len(schedule)))
        and np.array_equal(schedule.size_bytes[partner], schedule.size_bytes)
        and np.array_equal(schedule.position[partner], schedule.peer)
    )
    if matched and np.array_equal(sent, expected) and sent.sum() == received.sum():
        return
    raise ExpansionError(
        f"internal error: {name} on {schedule.ranks} ranks sends {sent.tolist()} bytes and "
        f"receives {received.tolist()} where the formula says {expected.tolist()}"
    )

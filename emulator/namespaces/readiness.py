"""Waits until interfaces carry packets: they are brought up at once, and begin a moment later.

The kernel starts a port's queueing discipline when it has noticed the carrier, in a worker of its
own; what is sent before is dropped.
"""

import time
from collections.abc import Iterable
from typing import Final

from dataplane.errors import RunError
from emulator.namespaces.netlink import Channel

__all__ = ["wait_until_ready"]

_TIMEOUT_S: Final = 10.0
_POLL_S: Final = 0.01


def wait_until_ready(namespace: str, channel: Channel, indices: Iterable[int]) -> None:
    """Return when these interfaces are operational; raises `RunError` when they don't become so."""
    wanted = set(indices)
    deadline_s = time.monotonic() + _TIMEOUT_S
    while True:
        ready = {
            link["index"] for link in channel.links() if link.get_attr("IFLA_OPERSTATE") == "UP"
        }
        if wanted <= ready:
            return
        if time.monotonic() > deadline_s:
            raise RunError(f"{namespace}: {len(wanted - ready)} interfaces did not come up")
        time.sleep(_POLL_S)

"""Settings of the network stack in a namespace. Written inside of it, before it has interfaces."""

import contextlib
from pathlib import Path
from typing import Final

__all__ = ["write_settings"]

_NETWORK: Final = Path("/proc/sys/net")

# Documentation/networking/ip-sysctl.rst
_QUIET: Final = {
    "ipv6/conf/all/disable_ipv6": "1",
    "ipv6/conf/default/disable_ipv6": "1",
    "ipv4/conf/all/rp_filter": "0",
    "ipv4/conf/default/rp_filter": "0",
}
"""Nothing but a job's traffic, and no opinion on which way it comes."""
_ROUTING: Final = {
    "ipv4/ip_forward": "1",
    "ipv4/conf/all/send_redirects": "0",
    "ipv4/conf/default/send_redirects": "0",
    "ipv4/fib_multipath_hash_policy": "1",
}
"""A router that chooses among equal-cost paths by addresses, protocol and ports."""
_HASH_SEED: Final = "ipv4/fib_multipath_hash_seed"
"""Since Linux 6.11; before, all routers of a machine choose alike."""


def write_settings(*, is_switch: bool, seed: int) -> None:
    """Set up the calling thread's namespace; raises `OSError` where a setting must be known."""
    for name, value in _QUIET.items():
        with contextlib.suppress(FileNotFoundError):
            _write(name, value)
    if not is_switch:
        return
    for name, value in _ROUTING.items():
        _write(name, value)
    with contextlib.suppress(FileNotFoundError):
        _write(_HASH_SEED, str(seed))


def _write(name: str, value: str) -> None:
    (_NETWORK / name).write_text(value, encoding="ascii")

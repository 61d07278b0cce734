"""A cable from a guest to a network namespace of the host: a tap whose far end QEMU holds."""

from __future__ import annotations

import fcntl
import os
import secrets
import struct
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from tests.namespaces import ip

TUN = Path("/dev/net/tun")
# Linux, include/uapi/linux/if_tun.h.
TUNSETIFF = 0x400454CA
IFF_TAP, IFF_NO_PI = 0x0002, 0x1000


@dataclass(frozen=True)
class Cable:
    """The host's end is an interface in a namespace, the guest's a descriptor."""

    namespace: str
    interface: str
    descriptor: int

    @contextmanager
    def pulled(self) -> Iterator[None]:
        """Take the host's end out for the block; the neighbour is forgotten meanwhile."""
        ip("-n", self.namespace, "link", "set", self.interface, "down")
        try:
            yield
        finally:
            ip("-n", self.namespace, "link", "set", self.interface, "up")


class NoCableError(Exception):
    """There can be no cable on this machine; the text says why."""


@contextmanager
def cable(address: str, *, mtu_bytes: int) -> Iterator[Cable]:
    """Lay a cable; `address`, with the length of its prefix, is the host's.

    The interface goes with its descriptor, the namespace with the block. Raises `NoCableError`.
    """
    name = f"rw{secrets.token_hex(4)}"
    try:
        descriptor = os.open(TUN, os.O_RDWR | os.O_CLOEXEC)
    except OSError as error:
        raise NoCableError(f"{TUN}: {error.strerror}") from error
    try:
        try:
            _lay(name, descriptor, address, mtu_bytes)
        except (OSError, RuntimeError) as error:
            raise NoCableError(str(error)) from error
        yield Cable(name, name, descriptor)
    finally:
        os.close(descriptor)
        subprocess.run(["ip", "netns", "del", name], capture_output=True, check=False)


def _lay(name: str, descriptor: int, address: str, mtu_bytes: int) -> None:
    request = struct.pack("16sH22x", name.encode(), IFF_TAP | IFF_NO_PI)
    fcntl.ioctl(descriptor, TUNSETIFF, request)
    ip("netns", "add", name)
    ip("link", "set", name, "netns", name)
    ip("-n", name, "addr", "add", address, "dev", name)
    ip("-n", name, "link", "set", name, "mtu", str(mtu_bytes), "up")
    ip("-n", name, "link", "set", "lo", "up")

"""The guest: booted once for all tests that use it."""

from __future__ import annotations

import socket
from collections.abc import Iterator

import pytest

import dataplane
from tests.kernel_peer import machine, packages
from tests.kernel_peer.session import Bench

MEMORY_BYTES = 2 << 20
PATTERN_BYTES = 65_521


def _bound_socket() -> socket.socket:
    """Return a socket on a free port of loopback."""
    bound = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
    bound.bind(("127.0.0.1", 0))
    bound.setblocking(False)
    bound.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4 << 20)
    return bound


@pytest.fixture(scope="session")
def bench(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Bench]:
    """Yield a running guest with registered memory."""
    try:
        folder = packages.prepare(packages.cache_folder())
    except packages.UnavailableError as unavailable:
        pytest.skip(f"no Linux kernel peer: {unavailable}")
    with _bound_socket() as ours, _bound_socket() as reserved:
        guest_port = reserved.getsockname()[1]
        reserved.close()
        peer = machine.boot(
            folder,
            tmp_path_factory.mktemp("guest"),
            guest_port=guest_port,
            host_port=ours.getsockname()[1],
            pattern=dataplane.payload_pattern(0, PATTERN_BYTES),
        )
        try:
            peer.ask("allocate", buffer_bytes=MEMORY_BYTES)
            yield Bench(peer, ours, guest_port, peer.wait_answer(30))
        finally:
            peer.close()

"""What crosses a cable: the headers of RoCEv2 packets as the host's kernel sees them."""

from __future__ import annotations

import contextlib
import socket
import struct
from collections.abc import Iterator
from dataclasses import dataclass

from pyroute2 import netns

from tests.vm_lab.cable import Cable

ROCE_PORT = 4791
# Linux, include/uapi/linux/if_ether.h.
ETH_P_ALL = 0x0003
# Linux, include/uapi/asm-generic/socket.h: beyond the limit of unprivileged programs.
SO_RCVBUFFORCE = 33
HEADERS_BYTES = 14 + 20 + 8 + 12


@dataclass(frozen=True)
class Seen:
    """One packet."""

    source: str
    traffic_class: int
    time_to_live: int
    source_port: int
    destination_qp: int


@contextlib.contextmanager
def sniffer(cable: Cable) -> Iterator[socket.socket]:
    """Listen in the namespace of a cable; it holds all packets of a small job."""
    netns.pushns(cable.namespace)
    try:
        listener = socket.socket(socket.AF_PACKET, socket.SOCK_RAW, 0)
    finally:
        netns.popns()
    with listener:
        listener.setsockopt(socket.SOL_SOCKET, SO_RCVBUFFORCE, 64 << 20)
        listener.bind((cable.interface, ETH_P_ALL))
        listener.setblocking(False)
        yield listener


def packets(listener: socket.socket) -> list[Seen]:
    """Every RoCEv2 packet so far, in both directions."""
    seen = []
    with contextlib.suppress(BlockingIOError):
        while True:
            packet = _packet(listener.recv(HEADERS_BYTES))
            if packet is not None:
                seen.append(packet)
    return seen


def _packet(frame: bytes) -> Seen | None:
    if len(frame) < HEADERS_BYTES or frame[12:14] != b"\x08\x00" or frame[23] != socket.IPPROTO_UDP:
        return None
    source_port, destination_port = struct.unpack_from("!HH", frame, 34)
    if destination_port != ROCE_PORT:
        return None
    return Seen(
        source=socket.inet_ntoa(frame[26:30]),
        traffic_class=frame[15],
        time_to_live=frame[22],
        source_port=source_port,
        destination_qp=int.from_bytes(frame[47:50], "big"),
    )

"""Bounded UDP traffic between two hosts of a lab, and what a receiver learns from each packet."""

import socket
import struct
import threading
import time
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from emulator.namespaces import Layout
from tests.emulator.namespaces.labs import udp_socket

PORT = 4791
HEADERS_BYTES = 14 + 20 + 8
LINE_OVERHEAD_BYTES = 24
ECT_0, CE = 2, 3

_SO_RCVBUFFORCE, _SO_TIMESTAMPNS, _IP_RECVTOS = 33, 35, 13


def line_bytes(payload_bytes: int) -> int:
    """What a packet takes on the line."""
    return payload_bytes + HEADERS_BYTES + LINE_OVERHEAD_BYTES


@dataclass(slots=True)
class Arrivals:
    """Packets that a receiver got, in order of arrival."""

    sent_ns: list[int] = field(default_factory=list)
    """When the sender gave them to its kernel, CLOCK_REALTIME."""
    arrived_ns: list[int] = field(default_factory=list)
    """When the receiver's kernel got them."""
    type_of_service: list[int] = field(default_factory=list)
    """DSCP and ECN."""

    @property
    def waited_ns(self) -> NDArray[np.int64]:
        """Between the two kernels."""
        return np.array(self.arrived_ns) - np.array(self.sent_ns)

    def rate_bps(self, payload_bytes: int) -> float:
        """On the line, between the first and the last arrival."""
        passed_ns = self.arrived_ns[-1] - self.arrived_ns[0]
        return (len(self.arrived_ns) - 1) * line_bytes(payload_bytes) * 8e9 / passed_ns


class Receiver:
    """Collects what arrives at a host until it has been silent for a while."""

    def __init__(self, layout: Layout, host: str, silence_s: float = 0.5) -> None:
        self.arrivals = Arrivals()
        self._socket = udp_socket(layout, host, PORT)
        self._socket.setsockopt(socket.SOL_SOCKET, _SO_RCVBUFFORCE, 64 << 20)
        self._socket.setsockopt(socket.SOL_SOCKET, _SO_TIMESTAMPNS, 1)
        self._socket.setsockopt(socket.IPPROTO_IP, _IP_RECVTOS, 1)
        self._socket.settimeout(silence_s)
        self._is_sending = True
        self._thread = threading.Thread(target=self._collect)

    def __enter__(self) -> "Receiver":
        self._thread.start()
        return self

    def __exit__(self, *exception: object) -> None:
        self._is_sending = False
        self._thread.join(timeout=60)
        self._socket.close()

    def _collect(self) -> None:
        while True:
            try:
                data, ancillary, _, _ = self._socket.recvmsg(64, 128)
            except TimeoutError:
                if self._is_sending:
                    continue
                return
            for level, kind, value in ancillary:
                if (level, kind) == (socket.SOL_SOCKET, _SO_TIMESTAMPNS):
                    seconds, nanoseconds = struct.unpack("=qq", value)
                    self.arrivals.arrived_ns.append(seconds * 10**9 + nanoseconds)
                elif (level, kind) == (socket.IPPROTO_IP, socket.IP_TOS):
                    self.arrivals.type_of_service.append(value[0])
            self.arrivals.sent_ns.append(struct.unpack_from("=q", data)[0])


def send(
    made: socket.socket, address: str, payload_bytes: int, type_of_service: int = ECT_0
) -> None:
    """One packet that says when it was sent."""
    made.setsockopt(socket.IPPROTO_IP, socket.IP_TOS, type_of_service)
    rest = bytes(payload_bytes - 8)
    made.sendto(struct.pack("=q", time.time_ns()) + rest, (address, PORT))


def sawtooth(
    made: socket.socket,
    address: str,
    payload_bytes: int,
    peak_bytes: int,
    rate_bps: int,
    teeth: int,
) -> None:
    """Fill a queue of that rate to `peak_bytes` at twice its rate, let it drain, and again.

    It has twice the time that it needs: a line that was late, as that of a busy machine is, would
    begin the next tooth with a queue that the marking program's own, which is never late, has not.
    """
    gap_s = line_bytes(payload_bytes) * 8 / rate_bps / 2
    packets = 2 * peak_bytes // line_bytes(payload_bytes)
    for _ in range(teeth):
        due_s = time.monotonic()
        for _ in range(packets):
            send(made, address, payload_bytes)
            due_s += gap_s
            if (early_s := due_s - time.monotonic()) > 0:
                time.sleep(early_s)
        time.sleep(2 * peak_bytes * 8 / rate_bps)

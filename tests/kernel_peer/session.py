"""One reliable connection between our endpoint and the kernel, and the words to test it with."""

from __future__ import annotations

import hashlib
import ipaddress
import json
import time
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

import dataplane
from tests.kernel_peer.machine import (
    GUEST_ADDRESS,
    GUEST_MAC,
    HOST_ADDRESS,
    HOST_MAC,
    KernelPeer,
)
from tests.kernel_peer.wire import Wire

MILLISECOND_PS = 1_000_000_000
OUR_QP = 0x1234
OUR_ADDRESS = 0x7F00_0000_1000
OUR_KEY = 0xC0FFEE
CLASSES = {
    "data_dscp": 26,
    "data_priority": 3,
    "data_ecn_capable": True,
    "ack_dscp": 26,
    "ack_priority": 3,
    "cnp_dscp": 48,
    "cnp_priority": 6,
}


def patient() -> dict[str, Any]:
    """Our transport parameters: no timer fires on a machine that is merely busy."""
    return {
        "mtu_bytes": 1024,
        "qps_per_peer": 1,
        # A window that the socket buffers of the guest's wire hold.
        "window_packets": 16,
        "ack_every_packets": 4,
        "ack_delay_ps": 100 * MILLISECOND_PS,
        "retransmission_timeout_ps": 3000 * MILLISECOND_PS,
        "retry_count": 7,
    }


def impatient() -> dict[str, Any]:
    """Our transport parameters where losses at the end of a message are common."""
    return patient() | {
        "ack_delay_ps": MILLISECOND_PS,
        "retransmission_timeout_ps": 60 * MILLISECOND_PS,
        "retry_count": 50,
    }


def pattern_sha256(start: int, length: int, zeros: int = 0) -> str:
    """SHA-256 of `length` bytes of the pattern from `start` on, and of `zeros` behind them."""
    return hashlib.sha256(dataplane.payload_pattern(start, length) + bytes(zeros)).hexdigest()


@dataclass
class Session:
    """A connection; `ours` are counters of our endpoint, `kernel` those of the guest's device."""

    peer: KernelPeer
    wire: Wire
    memory_address: int
    guest_qp: int
    events: list[dict[str, Any]] = field(default_factory=list)
    kernel_before: dict[str, int] = field(default_factory=dict)

    @property
    def endpoint(self) -> dataplane.Endpoint:
        """Our end."""
        return self.wire.endpoint

    def turn(self) -> None:
        """Let time pass."""
        self.wire.turn(self.peer.console)
        self.events += self.endpoint.events()

    def guest(self, operation: str, **arguments: Any) -> dict[str, Any]:
        """Let the guest's agent do something while the wire works."""
        self.peer.ask(operation, **arguments)
        for _ in self._turns(f"an answer to {operation}"):
            answer = self.peer.take_answer()
            if answer is not None:
                return answer
        raise AssertionError

    def expect(self, event: str) -> dict[str, Any]:
        """Wait for an event of our endpoint and take it with all before it."""
        for _ in self._turns(event):
            while self.events:
                found = self.events.pop(0)
                if found["event"] == event:
                    return found
                assert found["event"] != "failed", found
        raise AssertionError

    def expect_completion(self, identity: int) -> dict[str, Any]:
        """Wait for the guest's next completion, which must be of that request and good."""
        (completion,) = self.guest("poll", count=1, timeout_s=30)["completions"]
        assert (completion["identity"], completion["status"]) == (identity, 0)
        return completion

    def pass_time(self, seconds: float) -> None:
        """Let the wire work for so long."""
        end = time.monotonic() + seconds
        while time.monotonic() < end:
            self.turn()

    def settle(self) -> None:
        """Let the wire work until nothing has come for a while."""
        for _ in self._turns("silence"):
            before = self.wire.to_us.delivered + self.wire.to_guest.delivered
            self.pass_time(0.1)
            if self.wire.to_us.delivered + self.wire.to_guest.delivered == before:
                return

    def _turns(self, what: str, timeout_s: float = 40) -> Iterator[None]:
        """Let time pass until the caller has what it waits for."""
        end = time.monotonic() + timeout_s
        while time.monotonic() < end:
            yield
            self.turn()
        raise AssertionError(f"no {what} in {timeout_s} s; {self.ours()}; {self.events}")

    def post_in_guest(self, kind: str, size_bytes: int, immediate: int = 0) -> None:
        """Let the guest post a request of its first bytes, to our memory where it needs one."""
        self.guest(
            "post",
            kind=kind,
            offset=0,
            length=size_bytes,
            identity=size_bytes,
            address=OUR_ADDRESS,
            key=OUR_KEY,
            immediate=immediate,
        )

    def ours(self) -> dict[str, int]:
        """Return the counters of our endpoint."""
        return self.endpoint.counters()

    def kernel(self) -> dict[str, int]:
        """Return what the guest's device has counted for this connection."""
        now = self.guest("counters")
        return {name: value - self.kernel_before[name] for name, value in now.items()}

    def guest_digest(self, length: int, offset: int = 0) -> str:
        """SHA-256 of the guest's memory."""
        digest: str = self.guest("digest", offset=offset, length=length)["sha256"]
        return digest


@dataclass
class Bench:
    """A guest with its memory and its wire; opens sessions one after another."""

    peer: KernelPeer
    socket: Any
    guest_port: int
    memory: dict[str, int]

    def open(
        self,
        *,
        mtu_bytes: int = 1024,
        send_psn: int = 0x100,
        receive_psn: int = 0x900,
        transport: dict[str, Any] | None = None,
        guest_timeout: int = 18,
        **directions: Any,
    ) -> Session:
        """Open a new connection; the guest's timer is 4.096 us times two to `guest_timeout`."""
        arguments = {
            "peer_gid": ipaddress.IPv6Address(f"::ffff:{HOST_ADDRESS}").exploded,
            "peer_qp": OUR_QP,
            "mtu_bytes": mtu_bytes,
            "local_psn": receive_psn,
            "peer_psn": send_psn,
            "timeout": guest_timeout,
        }
        self.peer.ask("open", **arguments)
        guest_qp = self.peer.wait_answer(30)["qp"]
        endpoint = dataplane.Endpoint(
            transport_json=json.dumps((transport or patient()) | {"mtu_bytes": mtu_bytes}),
            classes_json=json.dumps(CLASSES),
            local_address=HOST_ADDRESS,
            remote_address=GUEST_ADDRESS,
            local_mac=bytes.fromhex(HOST_MAC.replace(":", "")),
            remote_mac=bytes.fromhex(GUEST_MAC.replace(":", "")),
            local_qp=OUR_QP,
            remote_qp=guest_qp,
            send_psn=send_psn,
            receive_psn=receive_psn,
        )
        endpoint.set_remote_memory(self.memory["address"], self.memory["key"])
        wire = Wire(self.socket, self.guest_port, endpoint, **directions)
        session = Session(self.peer, wire, self.memory["address"], guest_qp)
        session.kernel_before = session.guest("counters")
        return session

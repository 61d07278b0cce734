"""Arrival times of the drivers: those of the arrival, not of the look."""

import itertools
import time
from collections.abc import Iterator

import pytest

import dataplane
from nic_drivers.interface import Timestamps
from nic_drivers.port import AfPacketDriver, AfXdpDriver, PortDriver, PortOptions, UdpDriver
from tests.namespaces import Host, hosts

REST_S = 0.1
"""From the departure to the look."""
AFTER_S = 0.08
"""A time so long before the look was not taken by it."""


@pytest.fixture(scope="module")
def pair() -> Iterator[tuple[Host, Host]]:
    """Two hosts with a cable between them."""
    with hosts(2) as (left, right):
        yield left, right


def options(host: Host, peer: Host, mode: str) -> PortOptions:
    return PortOptions(
        host.address,
        namespace=host.namespace,
        destinations=(peer.address,),
        xdp_mode=mode,  # type: ignore[arg-type]
    )


@pytest.mark.parametrize(
    ("driver", "mode"),
    [
        (UdpDriver, "any"),
        (AfPacketDriver, "any"),
        (AfXdpDriver, "native"),
        (AfXdpDriver, "generic"),
    ],
)
@pytest.mark.parametrize("payload_bytes", [4, 4096])
def test_a_frame_has_the_time_at_which_the_kernel_had_it(
    pair: tuple[Host, Host], driver: type[PortDriver], mode: str, payload_bytes: int
) -> None:
    """CLOCK_MONOTONIC, in the order of arrival, for frames of one and of several parts."""
    left, right = pair
    with driver(options(left, right, mode)) as a, driver(options(right, left, mode)) as b:
        assert b.capabilities().timestamps is Timestamps.KERNEL
        sent = [
            dataplane.encode_roce(
                source_address=left.address,
                destination_address=right.address,
                psn=number,
                payload=bytes(payload_bytes),
            )
            for number in range(3)
        ]
        # The kernel begins to take times a moment after the first socket asks for them.
        time.sleep(REST_S)
        before_ns = time.monotonic_ns()
        for frame in sent:
            a.send_batch([frame])
            time.sleep(REST_S / 2)
        time.sleep(REST_S)
        looked_ns = time.monotonic_ns()
        received = b.receive_timed(8)
        assert b.native_counters()["untimed_frames"] == 0
    assert [dataplane.decode_roce(frame)["psn"] for frame, _ in received] == [0, 1, 2]
    times_ns = [time_ns for _, time_ns in received if time_ns is not None]
    assert len(times_ns) == 3
    assert times_ns == sorted(times_ns)
    assert times_ns[0] >= before_ns - 1_000_000
    assert times_ns[-1] <= looked_ns - int(AFTER_S * 1e9)
    assert min(b - a for a, b in itertools.pairwise(times_ns)) >= REST_S / 2 * 0.8e9

"""What only the driver `wire` promises."""

import pytest

from dataplane.errors import InputError
from nic_drivers import DriverError, find_driver
from nic_drivers.wire import WireDriver, WireOptions

LOCAL = ("127.0.0.1", 0)


@pytest.mark.parametrize("host", ["198.18.0.1", "8.8.8.8", "localhost", "::1", ""])
def test_a_wire_stays_on_this_host(host: str) -> None:
    """Neither end may be elsewhere."""
    with pytest.raises(DriverError, match="loopback"):
        WireDriver(WireOptions((host, 0)))
    with WireDriver(WireOptions(LOCAL)) as driver, pytest.raises(DriverError, match="loopback"):
        driver.connect((host, 1))


def test_a_taken_port_is_an_error_with_a_remedy() -> None:
    """It names address and port."""
    with WireDriver(WireOptions(LOCAL)) as taken:
        host, port = taken.local
        with pytest.raises(DriverError, match=rf"{host}:{port}.*choose a free port"):
            WireDriver(WireOptions((host, port)))


def test_a_frame_from_elsewhere_is_dropped_and_counted() -> None:
    """A wire has two ends."""
    with (
        WireDriver(WireOptions(LOCAL)) as left,
        WireDriver(WireOptions(LOCAL)) as right,
        WireDriver(WireOptions(LOCAL)) as stranger,
    ):
        left.connect(right.local)
        stranger.connect(left.local)
        stranger.send_batch([b"intruder"])
        while not left.counters().dropped_frames:
            assert left.receive_batch(8) == []


def test_a_wire_without_another_end_sends_nothing() -> None:
    """It says what is missing."""
    with WireDriver(WireOptions(LOCAL)) as driver, pytest.raises(DriverError, match="connect"):
        driver.send_batch([b"frame"])


def test_an_unknown_driver_is_an_input_error_that_names_the_known_ones() -> None:
    """So that a typing error is easily corrected."""
    with pytest.raises(InputError, match="use one of: wire"):
        find_driver("wired")

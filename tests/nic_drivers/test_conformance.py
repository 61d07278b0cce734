"""One suite for every driver: what `nic_drivers.interface` promises holds for each of them."""

import time
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager

import pytest

from nic_drivers import Driver, driver_names, find_driver
from nic_drivers.wire import WireDriver, WireOptions

TIMEOUT_S = 5.0
Pair = tuple[Driver, Driver]


@contextmanager
def wire_pair() -> Iterator[Pair]:
    """Open both ends of a wire."""
    options = WireOptions(("127.0.0.1", 0))
    with WireDriver(options) as left, WireDriver(options) as right:
        left.connect(right.local)
        right.connect(left.local)
        yield left, right


PAIRS: dict[str, Callable[[], AbstractContextManager[Pair]]] = {"wire": wire_pair}


@pytest.fixture(params=driver_names())
def pair(request: pytest.FixtureRequest) -> Iterator[Pair]:
    with PAIRS[request.param]() as drivers:
        yield drivers


def expect(driver: Driver, count: int) -> list[bytes]:
    """Receive a number of frames."""
    frames: list[bytes] = []
    deadline = time.monotonic() + TIMEOUT_S
    while len(frames) < count and time.monotonic() < deadline:
        frames += driver.receive_batch(count - len(frames))
    assert len(frames) == count
    return frames


def frame(number: int, size: int = 64) -> bytes:
    """Return a frame that can be told from others."""
    return number.to_bytes(4, "big") + bytes(size - 4)


def test_frames_arrive_unchanged_and_in_order(pair: Pair) -> None:
    """On one wire nothing overtakes."""
    sent = [frame(number, 64 + number) for number in range(20)]
    assert pair[0].send_batch(sent) == len(sent)
    assert expect(pair[1], len(sent)) == sent


def test_both_directions_are_open_at_once(pair: Pair) -> None:
    """A wire is full duplex."""
    pair[0].send_batch([frame(1)])
    pair[1].send_batch([frame(2)])
    assert expect(pair[0], 1) == [frame(2)]
    assert expect(pair[1], 1) == [frame(1)]


def test_an_empty_batch_is_legal(pair: Pair) -> None:
    """Nothing is sent and nothing is received."""
    assert pair[0].send_batch([]) == 0
    assert pair[0].receive_batch(0) == []


def test_receiving_never_waits(pair: Pair) -> None:
    """An idle wire gives an empty batch at once."""
    since = time.monotonic()
    assert pair[0].receive_batch(8) == []
    assert time.monotonic() - since < 1.0


def test_the_limit_of_a_batch_is_kept(pair: Pair) -> None:
    """The rest stays for the next call."""
    pair[0].send_batch([frame(number) for number in range(5)])
    assert expect(pair[1], 2) == [frame(0), frame(1)]
    assert expect(pair[1], 3) == [frame(2), frame(3), frame(4)]


def test_the_largest_frame_passes_and_a_larger_one_is_refused(pair: Pair) -> None:
    """`max_frame_bytes` means what it says; a refused batch sends nothing."""
    largest = pair[0].capabilities().max_frame_bytes
    with pytest.raises(ValueError, match="longer"):
        pair[0].send_batch([frame(1), frame(2, largest + 1)])
    assert pair[0].send_batch([frame(3, largest)]) == 1
    assert expect(pair[1], 1) == [frame(3, largest)]


def test_a_full_queue_accepts_a_prefix(pair: Pair) -> None:
    """What was accepted is counted, what was not is rejected, and nobody waits."""
    batch = [frame(number, 9000) for number in range(64)]
    accepted = sum(pair[0].send_batch(batch) for _ in range(100))
    counters = pair[0].counters()
    assert counters.sent_frames == accepted
    assert counters.sent_frames + counters.rejected_frames == 6400
    assert counters.sent_bytes == 9000 * accepted


def test_both_ends_count_the_same(pair: Pair) -> None:
    """Frames and bytes."""
    pair[0].send_batch([frame(0, 100), frame(1, 200)])
    expect(pair[1], 2)
    sent, received = pair[0].counters(), pair[1].counters()
    assert (sent.sent_frames, sent.sent_bytes) == (2, 300)
    assert (received.received_frames, received.received_bytes) == (2, 300)


def test_closing_twice_is_legal(pair: Pair) -> None:
    """A context manager may close what was closed already."""
    pair[0].close()
    pair[0].close()


def test_every_driver_is_described() -> None:
    """Names are unique and found again."""
    for name in driver_names():
        assert find_driver(name).name == name

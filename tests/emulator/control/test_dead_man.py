"""The dead man's switch, on the real clock with a short limit."""

import threading
import time

from emulator.control.dead_man import DeadMan

LIMIT_S = 0.2


def test_silence_calls_once() -> None:
    """The traffic is stopped after the limit, not before."""
    called = threading.Event()
    since = time.monotonic()
    DeadMan(called.set, LIMIT_S)
    assert called.wait(5)
    assert time.monotonic() - since >= LIMIT_S


def test_a_heard_controller_keeps_it_quiet() -> None:
    """Each heartbeat starts the limit anew."""
    called = threading.Event()
    dead_man = DeadMan(called.set, LIMIT_S)
    for _ in range(10):
        assert not called.wait(LIMIT_S / 4)
        dead_man.heard()
    dead_man.release()


def test_a_busy_agent_is_given_time() -> None:
    """A long step of its own is not silence of the controller; afterwards the limit counts anew."""
    called = threading.Event()
    dead_man = DeadMan(called.set, LIMIT_S)
    with dead_man.patience():
        assert not called.wait(3 * LIMIT_S)
    since = time.monotonic()
    assert called.wait(5)
    assert time.monotonic() - since >= LIMIT_S


def test_a_released_switch_stays_quiet() -> None:
    """After the run nobody needs to be heard."""
    called = threading.Event()
    DeadMan(called.set, LIMIT_S).release()
    assert not called.wait(3 * LIMIT_S)

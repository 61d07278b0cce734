"""What an agent takes in from a broker, whoever publishes there."""

from dataclasses import dataclass

from emulator.control.inbox import AGENT_LIMITS, Inbox, InboxLimits, controller_limits
from emulator.control.messages import MAX_MESSAGE_BYTES


@dataclass
class Message:
    """What the MQTT client hands over, as far as an inbox looks at it."""

    payload: object


def filled(limits: InboxLimits, *payloads: object) -> Inbox:
    """Return an inbox into which messages came at one instant."""
    inbox = Inbox(limits, clock_s=lambda: 0.0)
    for payload in payloads:
        inbox.put_nowait(Message(payload))
    return inbox


def test_a_message_that_is_too_large_is_dropped() -> None:
    """One byte above the limit; the limit itself is taken."""
    inbox = filled(AGENT_LIMITS, b"x" * MAX_MESSAGE_BYTES, b"x" * (MAX_MESSAGE_BYTES + 1))
    assert (inbox.qsize(), inbox.dropped_messages) == (1, 1)


def test_more_messages_than_may_wait_are_dropped() -> None:
    """A handler that is busy does not make the process grow."""
    inbox = filled(InboxLimits(1000, 3, MAX_MESSAGE_BYTES), *[b"x"] * 5)
    assert (inbox.qsize(), inbox.dropped_messages) == (3, 2)


def test_more_bytes_than_may_wait_are_dropped() -> None:
    """Until some have been handled."""
    inbox = filled(InboxLimits(1000, 1000, 10), b"x" * 6, b"x" * 5)
    assert inbox.dropped_messages == 1
    inbox.get_nowait()
    inbox.put_nowait(Message(b"x" * 10))
    assert (inbox.qsize(), inbox.dropped_messages) == (1, 1)


def test_messages_above_the_rate_are_dropped() -> None:
    """Large ones are a flood as well."""
    inbox = filled(InboxLimits(10, 1000, 1000), *[b"x" * 2000] * 10, b"x")
    assert (inbox.qsize(), inbox.dropped_messages) == (0, 11)


def test_a_payload_that_is_not_bytes_is_dropped() -> None:
    """The client library knows other types."""
    assert filled(AGENT_LIMITS, None, 5, "text").dropped_messages == 3


def test_a_controller_takes_in_what_its_agents_send() -> None:
    """While clocks are compared each answers a hundred times per second."""
    assert controller_limits(1024).messages_per_s >= 1024 * 100

"""Events of links that wait for operations on several agents are ordered once, for one time."""

import json
from typing import Any

import pytest

from emulator.control.event_orders import EventOrders
from emulator.control.messages import EventMoment, EventOrder, MalformedMessage, decode
from emulator.lab.model import Control

NOTICE_PS = 1000


def config(kind: str, *ranks: int, after_ps: int = 0) -> dict[str, Any]:
    operations = [{"rank": rank, "op": 5} for rank in ranks]
    event = {
        "links": [0],
        "trigger": {"kind": kind, "operations": operations},
        "changes": [{"after_ps": after_ps, "change": {"kind": "down"}}],
    }
    at_time = {"links": [0], "trigger": {"kind": "time", "at_ps": 0}, "changes": []}
    return {"events": [at_time, event]}


def orders(document: dict[str, Any]) -> EventOrders:
    """Ranks 0 and 1 on agent a, 2 and 3 on agent b."""
    return EventOrders(document, {0: "a", 1: "a", 2: "b", 3: "b"}, NOTICE_PS)


def test_an_event_of_one_agent_is_ordered_when_that_agent_tells_it() -> None:
    events = orders(config("last_end", 2, 3))
    assert events.is_waiting
    assert not events.order(0.0, 7)
    events.take("b", [(1, 50)], 0.0)
    assert events.order(0.0, 7)
    (ordered,) = events.ordered
    assert (ordered.event, ordered.moment_ps, ordered.base_ps) == (1, 50, 50 + NOTICE_PS)
    assert (ordered.told_by, ordered.ordered_realtime_ns) == ("b", 7)
    assert not events.is_waiting


def test_the_last_end_is_that_of_the_last_agent() -> None:
    events = orders(config("last_end", 1, 2))
    events.take("b", [(1, 90)], 0.0)
    assert not events.order(60.0, 0), "however long it takes"
    events.take("a", [(1, 40)], 60.0)
    assert events.order(60.0, 0)
    assert (events.ordered[0].moment_ps, events.ordered[0].told_by) == (90, "b")


def test_the_first_start_may_be_told_second() -> None:
    events = orders(config("first_start", 1, 2))
    events.take("b", [(1, 90)], 10.0)
    assert not events.order(10.01, 0)
    events.take("a", [(1, 40)], 10.02)
    assert events.order(10.02, 0)
    assert events.ordered[0].moment_ps == 40


def test_the_first_start_is_not_waited_for_where_nothing_starts() -> None:
    events = orders(config("first_start", 1, 2))
    events.take("b", [(1, 90)], 10.0)
    assert events.order(10.1, 0)
    events.take("a", [(1, 40)], 10.2)
    assert not events.order(10.3, 0), "an event is ordered once"
    assert events.ordered[0].moment_ps == 90


def test_a_first_change_after_the_notice_is_not_put_off() -> None:
    """A run then has the event when its prediction has it."""
    for after_ps, base_ps in ((400, 50 + 600), (1000, 50), (4000, 50)):
        events = orders(config("last_end", 2, after_ps=after_ps))
        events.take("b", [(1, 50)], 0.0)
        events.order(0.0, 0)
        assert events.ordered[0].base_ps == base_ps


def test_words_about_what_the_agent_does_not_carry_count_for_nothing() -> None:
    events = orders(config("last_end", 2))
    events.take("a", [(1, 50), (0, 1), (9, 1)], 0.0)
    assert not events.order(100.0, 0)


def test_the_latest_moment_that_can_be_told_is_ordered() -> None:
    """With the longest notice of a lab; later ones are malformed."""
    latest_ps = 2**62 - 1
    told = decode(EventMoment, json.dumps({"event": 1, "time_ps": latest_ps}).encode())
    longest_ps = Control(event_notice_ms=60_000).event_notice_ms * 10**9
    events = EventOrders(config("last_end", 2), {2: "b"}, longest_ps)
    events.take("b", [(told.event, told.time_ps)], 0.0)
    events.order(0.0, 0)
    (ordered,) = events.ordered
    assert EventOrder(event=1, base_ps=ordered.base_ps).base_ps == latest_ps + longest_ps
    with pytest.raises(MalformedMessage):
        decode(EventMoment, json.dumps({"event": 1, "time_ps": latest_ps + 1}).encode())

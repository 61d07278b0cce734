"""The topic tree: what is built is parsed again, and nothing else is."""

import pytest

from emulator.control import topics
from emulator.control.topics import Topic


@pytest.mark.parametrize(
    ("topic", "parsed"),
    [
        (topics.presence("a"), Topic("presence", agent="a")),
        (topics.controller_heartbeat("r1"), Topic("controller", run="r1")),
        (topics.desired("r1", "a"), Topic("desired", "r1", "a")),
        (topics.actual("r1", "a"), Topic("actual", "r1", "a")),
        (topics.agent_heartbeat("r1", "a"), Topic("heartbeat", "r1", "a")),
        (topics.progress("r1", "a"), Topic("progress", "r1", "a")),
    ],
)
def test_a_topic_that_was_built_is_parsed_to_its_parts(topic: str, parsed: Topic) -> None:
    """Building and parsing are inverse."""
    assert topics.parse(topic) == parsed


@pytest.mark.parametrize(
    "topic",
    [
        "",
        "rankwire",
        "rankwire/r1",
        "other/r1/controller",
        "rankwire/r1/agents/a/shell",
        "rankwire/r1/agents/../desired",
        "rankwire/r1/agents/a/desired/x",
        "rankwire/r1/agents/" + "a" * 65 + "/desired",
        "rankwire/r 1/controller",
        "rankwire/r1/controller\n",
    ],
)
def test_a_foreign_topic_is_not_parsed(topic: str) -> None:
    """A topic outside of the tree addresses nothing."""
    assert topics.parse(topic) is None

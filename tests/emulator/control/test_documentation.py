"""docs/control.md says what the code does."""

import re
from pathlib import Path

from emulator.control import topics
from emulator.control.agent_config import AgentConfig
from emulator.control.desired import TARGETS

MANUAL = (Path(__file__).parents[3] / "docs" / "control.md").read_text()


def test_the_phases_and_states_of_the_manual_are_those_of_the_table() -> None:
    """In the same order."""
    section = MANUAL.split("## Desired and actual state")[1].split("\n## ")[0]
    rows = re.findall(r"^\| `(\w+)` \| `(\w+)` \|", section, re.MULTILINE)
    assert rows == [(phase.value, state.value) for phase, state in TARGETS.items()]


def test_the_topics_of_the_manual_are_those_of_the_code() -> None:
    """Placeholders apart."""
    rows = set(re.findall(r"^\| `(rankwire/[^`]+)` \|", MANUAL, re.MULTILINE))
    built = {
        topics.presence("<agent>"),
        topics.controller_heartbeat("<run>"),
        *(
            topic("<run>", "<agent>")
            for topic in (topics.desired, topics.actual, topics.agent_heartbeat, topics.progress)
        ),
    }
    assert rows == built


def test_the_keys_of_the_agents_file_are_all_described() -> None:
    """And no others."""
    section = MANUAL.split("## The agent's file")[1]
    rows = re.findall(r"^\| `(\w+)` \|", section, re.MULTILINE)
    assert rows == list(AgentConfig.model_fields)

"""docs/control.md says what the code does."""

import re
from pathlib import Path

from emulator.control import agent, topics
from emulator.control.agent_config import AgentConfig
from emulator.control.columns import MAX_RECORDS_BYTES
from emulator.control.desired import TARGETS
from emulator.control.inbox import AGENT_LIMITS, controller_limits
from emulator.control.messages import MAX_MESSAGE_BYTES

DOCS = Path(__file__).parents[3] / "docs"
MANUAL = (DOCS / "control.md").read_text()
SECURITY = (DOCS / "security.md").read_text()


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


def test_the_limits_in_the_threat_model_are_those_of_the_code() -> None:
    """Number by number."""
    some, more = controller_limits(0), controller_limits(1)
    per_agent = more.messages_per_s - some.messages_per_s
    expected = {
        "payload of a message": f"{MAX_MESSAGE_BYTES >> 20} MiB",
        "messages per second": f"{AGENT_LIMITS.messages_per_s}",
        "messages that wait": f"{AGENT_LIMITS.waiting_messages}",
        "bytes that wait": f"{AGENT_LIMITS.waiting_bytes >> 20} MiB",
        "messages per second, controller": f"{some.messages_per_s} + {per_agent} per agent",
        "runs kept in mind": f"{agent._MAX_RUNS}",
        "job or records, unpacked": f"{MAX_RECORDS_BYTES >> 30} GiB",
    }
    section = SECURITY.split("## Limits")[1].split("\n## ")[0]
    rows = dict(re.findall(r"^\| ([a-z, ]+?) \| ([^|]+?) \|", section, re.MULTILINE))
    assert rows == {"limit": "value"} | expected


def test_the_tests_that_the_threat_model_names_exist() -> None:
    """Each promise has one."""
    named = set(re.findall(r"`(test_\w+)`", SECURITY))
    tests = "".join(path.read_text() for path in Path(__file__).parents[2].rglob("test_*.py"))
    assert named
    assert {name for name in named if f"def {name}(" not in tests} == set()

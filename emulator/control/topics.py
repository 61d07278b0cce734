"""The topic tree of the control protocol, built and parsed in one place.

::

    rankwire/presence/<agent>             retained; "online", or "lost" as the agent's last will
    rankwire/<run>/controller             heartbeat of the controller; last will: gone
    rankwire/<run>/agents/<agent>/desired    retained; what the agent shall do
    rankwire/<run>/agents/<agent>/actual     retained; what the agent did
    rankwire/<run>/agents/<agent>/heartbeat  answer to the controller's heartbeat
    rankwire/<run>/agents/<agent>/progress   counters and completed operations while running
"""

import re
from dataclasses import dataclass
from typing import Final

__all__ = [
    "NAME_PATTERN",
    "Topic",
    "actual",
    "agent_heartbeat",
    "controller_heartbeat",
    "desired",
    "parse",
    "presence",
    "progress",
]

NAME_PATTERN: Final = r"[A-Za-z0-9][A-Za-z0-9_.-]{0,63}"
"""A run id or an agent name: one topic level without wildcards, usable as a file name."""

ROOT: Final = "rankwire"
_PRESENCE = re.compile(rf"{ROOT}/presence/(?P<agent>{NAME_PATTERN})")
_CONTROLLER = re.compile(rf"{ROOT}/(?P<run>{NAME_PATTERN})/controller")
_AGENT = re.compile(
    rf"{ROOT}/(?P<run>{NAME_PATTERN})/agents/(?P<agent>{NAME_PATTERN})"
    r"/(?P<kind>desired|actual|heartbeat|progress)"
)


@dataclass(frozen=True, slots=True)
class Topic:
    """A parsed topic: `kind` is presence, controller, desired, actual, heartbeat or progress."""

    kind: str
    run: str = ""
    agent: str = ""


def parse(topic: str) -> Topic | None:
    """Return what a topic addresses, or None for one that is not ours."""
    if match := _AGENT.fullmatch(topic):
        return Topic(match["kind"], match["run"], match["agent"])
    if match := _PRESENCE.fullmatch(topic):
        return Topic("presence", agent=match["agent"])
    if match := _CONTROLLER.fullmatch(topic):
        return Topic("controller", run=match["run"])
    return None


def presence(agent: str) -> str:
    """Return the topic of an agent's presence; `+` for every agent."""
    return f"{ROOT}/presence/{agent}"


def controller_heartbeat(run: str) -> str:
    """Return the topic of the controller's heartbeat; `+` for every run."""
    return f"{ROOT}/{run}/controller"


def desired(run: str, agent: str) -> str:
    """Return the topic of an agent's desired state; `+` for every run or agent."""
    return f"{ROOT}/{run}/agents/{agent}/desired"


def actual(run: str, agent: str) -> str:
    """Return the topic of an agent's actual state."""
    return f"{ROOT}/{run}/agents/{agent}/actual"


def agent_heartbeat(run: str, agent: str) -> str:
    """Return the topic of an agent's answer to heartbeats."""
    return f"{ROOT}/{run}/agents/{agent}/heartbeat"


def progress(run: str, agent: str) -> str:
    """Return the topic of an agent's counters and completed operations."""
    return f"{ROOT}/{run}/agents/{agent}/progress"

"""What the controller needs to know of a job: who carries what, and how long to be patient."""

import json
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Final

from dataplane.errors import InputError, Problem
from emulator.control.assignment import Topology, assign
from emulator.control.job_document import JobDocument
from emulator.control.roster import AGENT_SILENCE_LIMIT_S
from emulator.control.stall import DEFAULT_STALL_TIMEOUT_S
from emulator.control.topics import NAME_PATTERN
from emulator.control.transport import BrokerAddress
from traffic_profiles.program import Program

__all__ = ["DEFAULT_JOIN_TIMEOUT_S", "RunPlan", "spread"]

DEFAULT_JOIN_TIMEOUT_S: Final = 30.0
"""An agent starts in a second; a loaded machine may take many times as long."""


@dataclass(frozen=True, slots=True)
class RunPlan:
    """One run, resolved."""

    run_id: str
    """Unique on the broker."""
    config_json: str
    """The engine's configuration."""
    programs: Sequence[Program]
    """One for each rank."""
    time_dilation: int
    """Seconds of wall time per emulated second."""
    agents: Mapping[str, Sequence[str]]
    """Agent name -> nodes that it carries."""
    broker: BrokerAddress | None = None
    """None: the embedded broker."""
    spawns_agents: bool = True
    """The agents are child processes; False: they are running already and know the broker."""
    http_address: str = "127.0.0.1"
    """Address on which jobs are served to the agents."""
    broker_port: int = 0
    """Port of the embedded broker, 0 lets the system choose."""
    join_timeout_s: float = DEFAULT_JOIN_TIMEOUT_S
    """Until every agent has joined, and again until every one is prepared."""
    stall_timeout_s: float = DEFAULT_STALL_TIMEOUT_S
    """Wall time without progress after which a run ends."""
    agent_silence_limit_s: float = AGENT_SILENCE_LIMIT_S
    """Wall time without an answer after which an agent counts as gone."""
    event_notice_ps: int = 0
    """Emulated time between the moment of an event of links and its first change, at least, where
    several agents have to hear of it."""
    ports: Mapping[str, Mapping[str, Any]] | None = None
    """NIC -> port, when the network is real and its switches are carried by nobody."""
    agent_limits: Mapping[str, Mapping[str, Any]] = field(default_factory=dict)
    """Spawned agent -> keys of its file beyond the defaults."""
    ranks: Mapping[str, int] = field(init=False)
    """NIC name -> rank."""

    def __post_init__(self) -> None:
        topology = Topology(json.loads(self.config_json))
        object.__setattr__(self, "ranks", topology.ranks)
        nodes = topology.nodes if self.ports is None else list(topology.nics)
        problems = [*_name_problems(self.agents), *_node_problems(nodes, self.agents)]
        if problems:
            raise InputError(*problems)

    @property
    def nodes_of_ranks(self) -> dict[int, str]:
        """Rank -> NIC name."""
        return {rank: nic for nic, rank in self.ranks.items()}

    @property
    def agents_of_ranks(self) -> dict[int, str]:
        """Rank -> agent."""
        carried = ((agent, node) for agent, nodes in self.agents.items() for node in nodes)
        return {self.ranks[node]: agent for agent, node in carried if node in self.ranks}

    def programs_of(self, agent: str) -> list[Program]:
        """Return the programs of the ranks that an agent carries."""
        carried = {self.ranks[node] for node in self.agents[agent] if node in self.ranks}
        return [program for program in self.programs if program.rank in carried]

    def document(self, agent: str) -> JobDocument:
        """Return the job of one agent."""
        return JobDocument(
            self.config_json,
            self.time_dilation,
            self.agents[agent],
            self.programs_of(agent),
            self._ports_of(agent),
        )

    def _ports_of(self, agent: str) -> Mapping[str, Mapping[str, Any]] | None:
        if self.ports is None:
            return None
        return {nic: self.ports[nic] for nic in self.agents[agent]}


def spread(config_json: str, count: int, *, with_switches: bool = True) -> dict[str, list[str]]:
    """Return `count` agents with the nodes that they carry; agents without a node are left out."""
    names = [f"agent-{index}" for index in range(count)]
    assigned = assign(Topology(json.loads(config_json)), names, with_switches=with_switches)
    return {name: nodes for name, nodes in assigned.items() if nodes}


def _name_problems(agents: Mapping[str, Sequence[str]]) -> list[Problem]:
    remedy = "use at most 64 letters, digits, dots, dashes and underscores"
    return [
        Problem("agents", f"the name {name!r} cannot be a topic level", remedy)
        for name in agents
        if not re.fullmatch(NAME_PATTERN, name)
    ]


def _node_problems(nodes: Sequence[str], agents: Mapping[str, Sequence[str]]) -> list[Problem]:
    carried = [node for nodes in agents.values() for node in nodes]
    remedy = "let every node be carried by exactly one agent"
    twice = sorted({node for node in carried if carried.count(node) > 1})
    nobody = sorted(set(nodes).difference(carried))
    unknown = sorted(set(carried).difference(nodes))
    return [
        Problem("agents", f"{what}: {', '.join(named)}", remedy)
        for what, named in (
            ("carried by several agents", twice),
            ("carried by no agent", nobody),
            ("not nodes of the lab", unknown),
        )
        if named
    ]

"""The job of one agent as bytes: configuration, its nodes, and the programs of its ranks.

Columns in an npz, no pickle; the agent fetches it by HTTP and checks the digest.
"""

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, fields
from typing import Any

import numpy as np

from emulator.control import columns
from emulator.control.messages import MalformedMessage
from traffic_profiles.program import Program

__all__ = ["JobDocument"]

_PROGRAM_COLUMNS = tuple(field.name for field in fields(Program) if field.name != "rank")


@dataclass(frozen=True, slots=True)
class JobDocument:
    """What one agent needs to know of a job."""

    config_json: str
    """The engine's configuration of the whole fabric."""
    time_dilation: int
    """Seconds of wall time per emulated second."""
    nodes: Sequence[str]
    """NICs and switches that the agent carries."""
    programs: Sequence[Program]
    """Programs of the ranks on those NICs."""
    ports: Mapping[str, Mapping[str, Any]] | None = None
    """NIC -> port, as `dataplane.Port` describes it, when the network is real; None: wires."""

    def encode(self) -> bytes:
        """Return the document as bytes."""
        header = {
            "config": self.config_json,
            "time_dilation": self.time_dilation,
            "nodes": list(self.nodes),
            "ports": self.ports,
        }
        text = json.dumps(header).encode()
        return columns.encode(
            {
                "header": np.frombuffer(text, dtype=np.uint8),
                "programs": {
                    str(program.rank): {name: getattr(program, name) for name in _PROGRAM_COLUMNS}
                    for program in self.programs
                },
            }
        )

    @classmethod
    def decode(cls, data: bytes) -> "JobDocument":
        """Return the document in some bytes; raises `MalformedMessage`."""
        tree = columns.decode(data)
        try:
            header = json.loads(tree["header"].tobytes())
            return cls(
                config_json=_text(header["config"]),
                time_dilation=int(header["time_dilation"]),
                nodes=[_text(node) for node in header["nodes"]],
                programs=_programs(tree.get("programs", {})),
                ports=_ports(header["ports"]),
            )
        except (KeyError, TypeError, ValueError, AttributeError) as error:
            raise MalformedMessage(f"not the document of a job: {error!r}") from error


def _text(value: Any) -> str:
    if not isinstance(value, str):
        raise TypeError(f"{value!r} is not a string")
    return value


def _ports(value: Any) -> dict[str, dict[str, Any]] | None:
    if value is None:
        return None
    return {_text(name): dict(port) for name, port in value.items()}


def _programs(tree: Mapping[str, Mapping[str, Any]]) -> list[Program]:
    programs = []
    for rank, arrays in tree.items():
        if set(arrays) != set(_PROGRAM_COLUMNS):
            raise ValueError(f"the program of rank {rank} has the columns {sorted(arrays)}")
        programs.append(Program(rank=int(rank), **{name: arrays[name] for name in arrays}))
    return programs

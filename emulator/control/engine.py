"""What an agent needs of the native engine, and where it comes from."""

import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import fields
from typing import Any, Protocol

import dataplane
from emulator.control.job_document import JobDocument

__all__ = ["Engine", "EngineFactory", "empty_records", "wall_engine"]


class Engine(Protocol):
    """The endpoints and switches of some nodes under the wall clock."""

    def bind(self) -> Mapping[str, int]:
        """Open wires or ports; returns wire end -> UDP port."""

    def device_ends(self) -> str:
        """Return what peers must know of NICs that RDMA devices carry: JSON, by name."""

    def connect(
        self, peers: Mapping[str, tuple[str, int]], devices_json: str | None = None
    ) -> None:
        """Name the opposite end of every own wire end, and NICs that RDMA devices carry."""

    def start(self, start_monotonic_ns: int) -> None:
        """Begin at a CLOCK_MONOTONIC instant, emulated time 0."""

    def stop(self) -> None:
        """Ask the engine to stop; callable from any thread, any number of times."""

    def join(self, timeout_s: float) -> bool:
        """Wait until it has stopped; False if it has not in time."""

    @property
    def is_running(self) -> bool:
        """Whether the engine's loop runs."""

    def snapshot(self) -> dict[str, Any]:
        """Return cumulative counters."""

    def moments(self) -> Sequence[tuple[int, int]]:
        """Return moments of events of links that have come here: event, emulated ps."""

    def order_event(self, event: int, base_ps: int) -> None:
        """Have an event of links happen, its changes counted from an emulated time."""

    def completed(self) -> dict[str, Any]:
        """Return the operations that completed since the last call."""

    def blocked(self, limit: int) -> Sequence[Mapping[str, Any]]:
        """Return operations that have begun or are ready and are not complete."""

    def records(self) -> dict[str, Any]:
        """Return the final columns."""

    def ports(self) -> dict[str, dict[str, Any]]:
        """Return what the port of each NIC can do; empty where the fabric is emulated."""

    def lateness(self) -> dict[str, Any]:
        """Return how late events were dispatched, wall nanoseconds."""


EngineFactory = Callable[[JobDocument, str], Engine]
"""Makes the engine of a job, with the address on which its wires receive."""


def wall_engine(job: JobDocument, bind_address: str) -> Engine:
    """Return the native engine: with ports where the job has some, else with wires."""
    native: Any = dataplane
    programs = [
        native.Program(**{field.name: getattr(program, field.name) for field in fields(program)})
        for program in job.programs
    ]
    engine: Engine = native.WallEmulation(
        job.config_json,
        programs,
        list(job.nodes),
        job.time_dilation,
        bind_address,
        None if job.ports is None else json.dumps(job.ports),
    )
    return engine


def empty_records(config_json: str) -> dict[str, Any]:
    """Return the engine's tables without a row, for what no agent has reported."""
    config = json.loads(config_json)
    for event in config.get("events", ()):
        # There are no programs here whose operations it could wait for.
        event["trigger"] = {"kind": "time", "at_ps": 0}
    empty = dataplane.Emulation(json.dumps(config), [])
    emptied: dict[str, Any] = _without_rows(empty.records())
    return emptied


def _without_rows(tree: Any) -> Any:
    if isinstance(tree, Mapping):
        return {name: _without_rows(branch) for name, branch in tree.items()}
    return tree[:0]

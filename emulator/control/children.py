"""Agents as child processes of the controller, for labs on one machine."""

import asyncio
import contextlib
import os
import shutil
import sys
import tempfile
import time
from collections.abc import AsyncIterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, BinaryIO, Final
from urllib.parse import quote

import yaml

import emulator
from emulator.control.transport import BrokerAddress

__all__ = ["Children", "login_url", "spawn_agents"]

_END_TIMEOUT_S: Final = 3.0
_POLL_S: Final = 0.02
_LOG_TAIL_LINES: Final = 5
_LOG_TAIL_BYTES: Final = 4096


@dataclass(frozen=True, slots=True)
class _Child:
    name: str
    process: asyncio.subprocess.Process
    log: BinaryIO
    """What it prints; a file without a name, which nobody can forget to remove."""


class Children:
    """The agents that this process has spawned; made by `spawn_agents`."""

    def __init__(self, directory: Path) -> None:
        self._directory = directory
        self._children: list[_Child] = []

    @property
    def pids(self) -> dict[str, int]:
        """Agent name -> process id."""
        return {child.name: child.process.pid for child in self._children}

    async def spawn(
        self, name: str, run: str, broker: BrokerAddress, limits: Mapping[str, Any]
    ) -> None:
        """Start one agent. Its file holds the broker's password and is readable by us alone."""
        config = self._directory / f"{name}.yaml"
        document = _agent_document(name, run, broker) | dict(limits)
        config.touch(mode=0o600)
        config.write_text(yaml.safe_dump(document), encoding="utf-8")
        await self.launch(name, config)

    async def launch(self, name: str, config: Path) -> None:
        """Start an agent that has a file already."""
        log = tempfile.TemporaryFile()  # noqa: SIM115  # open as long as the child may write
        process = await asyncio.create_subprocess_exec(
            *(sys.executable, "-m", "emulator", "agent", "--config", str(config)),
            stdin=asyncio.subprocess.DEVNULL,
            stdout=log,
            stderr=log,
            env=_environment(),
            # The terminal's Ctrl-C is for the controller, which then stops the agents.
            start_new_session=True,
        )
        self._children.append(_Child(name, process, log))

    def ended(self) -> dict[str, str]:
        """Return the agents whose processes have ended: name -> how, with their last words."""
        return {
            child.name: _how(child.process.returncode) + _last_words(child.log)
            for child in self._children
            if child.process.returncode is not None
        }

    async def wait_for_end(self, timeout_s: float) -> None:
        """Wait until one of them has ended, but no longer than `timeout_s`."""
        deadline_s = time.monotonic() + timeout_s
        while not self.ended() and time.monotonic() < deadline_s:
            await asyncio.sleep(_POLL_S)

    def forget_files(self) -> None:
        """Remove the agents' files, which they have read: a killed controller leaves none."""
        shutil.rmtree(self._directory, ignore_errors=True)

    async def end(self) -> None:
        """Wait until all have ended; those that do not are terminated, then killed."""
        waiting: list[Any] = [
            asyncio.ensure_future(child.process.wait()) for child in self._children
        ]
        if not waiting:
            return
        _, late = await asyncio.wait(waiting, timeout=_END_TIMEOUT_S)
        for end in (asyncio.subprocess.Process.terminate, asyncio.subprocess.Process.kill):
            if not late:
                return
            for child in self._children:
                if child.process.returncode is None:
                    with contextlib.suppress(ProcessLookupError):
                        end(child.process)
            _, late = await asyncio.wait(late, timeout=_END_TIMEOUT_S)


@contextlib.asynccontextmanager
async def spawn_agents(
    names: Sequence[str],
    run: str,
    broker: BrokerAddress,
    limits: Mapping[str, Mapping[str, Any]] | None = None,
) -> AsyncIterator[Children]:
    """Start agents and see to it that none is left behind.

    `limits` are keys of an agent's file beyond the defaults, which keep it on loopback.
    """
    children = Children(Path(tempfile.mkdtemp(prefix="rankwire-")))
    try:
        for name in names:
            await children.spawn(name, run, broker, (limits or {}).get(name, {}))
        yield children
    finally:
        await children.end()
        children.forget_files()


def _agent_document(name: str, run: str, broker: BrokerAddress) -> dict[str, Any]:
    return {
        "name": name,
        "broker": login_url(broker),
        "mqtt_version": broker.mqtt_version,
        "run": run,
        "exit_with_controller": True,
    }


def login_url(broker: BrokerAddress) -> str:
    """Return the broker's URL with user and password, for an agent's file and nothing else."""
    scheme, rest = str(broker).split("://")
    if broker.username is None:
        return f"{scheme}://{rest}"
    user = quote(broker.username, safe="")
    password = f":{quote(broker.password, safe='')}" if broker.password else ""
    return f"{scheme}://{user}{password}@{rest}"


def _environment() -> dict[str, str]:
    root = str(Path(emulator.__file__).resolve().parent.parent)
    path = os.environ.get("PYTHONPATH", "")
    return {**os.environ, "PYTHONPATH": f"{root}{os.pathsep}{path}" if path else root}


def _how(status: int) -> str:
    cause = f"by signal {-status}" if status < 0 else f"with status {status}"
    return f"its process ended {cause}"


def _last_words(log: BinaryIO) -> str:
    # The child shares the position in the file: it must not be moved.
    with contextlib.suppress(OSError, ValueError):
        size_bytes = os.fstat(log.fileno()).st_size
        tail = os.pread(log.fileno(), _LOG_TAIL_BYTES, max(size_bytes - _LOG_TAIL_BYTES, 0))
        lines = tail.decode(errors="replace").strip().splitlines()
        if lines:
            return ": " + " | ".join(lines[-_LOG_TAIL_LINES:])
    return ""

"""Processes inside a namespace; never by a shell."""

import os
import subprocess
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import emulator
from dataplane.errors import RunError
from emulator.namespaces.kernel import inside

__all__ = ["command_inside", "start_inside"]


def start_inside(
    namespace: str,
    command: Sequence[str],
    environment: Mapping[str, str] | None = None,
    **options: Any,
) -> "subprocess.Popen[bytes]":
    """Start a process inside the namespace of that name under /run/netns.

    The calling thread enters it for as long as the start takes, so that the process is in it from
    the first instruction on. `options` are `subprocess.Popen`'s. Raises `RunError` when there is no
    such namespace or the permission is missing.
    """
    try:
        with inside(namespace):
            return subprocess.Popen(list(command), env=environment, **options)
    except OSError as error:
        raise RunError(
            f"{command[0]} cannot be started in the namespace {namespace}: {error.strerror}; "
            "it needs `rankwire lab up` and root"
        ) from error


def command_inside(namespace: str, command: Sequence[str]) -> list[str]:
    """The command line that enters the namespace and then becomes `command`.

    For starters of processes that can't be called from inside, asyncio's above all: the child
    itself calls setns, then exec.
    """
    script = Path(emulator.__file__).parent / "namespaces" / "enter.py"
    return [sys.executable, "-I", "-S", os.fspath(script), namespace, *command]

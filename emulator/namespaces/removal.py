"""Removes what a lab's state says, and nothing else: every name is checked before."""

import contextlib
import time
from dataclasses import dataclass
from typing import Final

from dataplane.errors import RunError
from emulator.namespaces import kernel, state
from emulator.namespaces.netlink import Channel
from emulator.namespaces.occupants import occupants
from emulator.namespaces.permissions import check_permissions
from nic_drivers.bpf import ArrayMap, BpfError

__all__ = ["Removal", "remove", "take_down"]

_CLEANUP_TIMEOUT_S: Final = 8.0
_POLL_S: Final = 0.02


@dataclass(frozen=True, slots=True)
class Removal:
    """What was removed."""

    namespaces: int
    foreign: tuple[str, ...]
    """Names that are of somebody else now, and were left alone."""
    is_complete: bool
    """The kernel has let go of everything, as far as can be seen."""


def take_down(lab: str) -> Removal | None:
    """Remove a lab that is up or was begun; `None` when there is none.

    Raises `RunError` while processes are inside of it.
    """
    check_permissions(lab)
    with state.locked(lab):
        before = state.read_state(lab)
        if before is None:
            return None
        inside = occupants(before)
        if inside:
            shown = ", ".join(f"{name} (process {pid})" for pid, name in inside[:8])
            raise RunError(f"lab {lab} is in use by {shown}; end the run first")
        return remove(before)


def remove(before: state.LabState) -> Removal:
    """Remove everything that the state names and that is ours."""
    before = state.write(before, phase="removing")
    removed, foreign = 0, []
    for name in before.namespaces:
        if not (kernel.NAMES / name).exists():
            continue
        if kernel.is_bound(name) and not _is_ours(name, before.token):
            foreign.append(name)
            continue
        try:
            kernel.remove_name(name)
        except OSError as error:
            raise RunError(f"the namespace {name} cannot be removed: {error.strerror}") from error
        removed += 1
    is_complete = _wait_for_cleanup(before)
    state.forget(before.lab)
    return Removal(removed, tuple(foreign), is_complete)


def _is_ours(name: str, token: str) -> bool:
    """Whether the namespace of that name carries the token."""
    with kernel.inside(name), contextlib.closing(Channel()) as channel:
        aliases = [link.get_attr("IFLA_IFALIAS") for link in channel.links() if link["index"] == 1]
    return token in aliases


def _wait_for_cleanup(before: state.LabState) -> bool:
    """Wait until the kernel has freed the map of the ports' counters, the last that it frees."""
    if before.map_number is None or not before.is_of_this_boot:
        return True
    deadline_s = time.monotonic() + _CLEANUP_TIMEOUT_S
    while time.monotonic() < deadline_s:
        try:
            ArrayMap.open(before.map_number, 0, 0).close()
        except BpfError:
            return True
        time.sleep(_POLL_S)
    return False

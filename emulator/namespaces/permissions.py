"""Whether this process may make network namespaces."""

from pathlib import Path
from typing import Final

from dataplane.errors import InputError, Problem

__all__ = ["check_permissions"]

# include/uapi/linux/capability.h
_NEEDED: Final = {"CAP_NET_ADMIN": 12, "CAP_SYS_ADMIN": 21}
_STATUS: Final = Path("/proc/self/status")


def check_permissions(lab: str) -> None:
    """Raise `InputError` unless this process has the capabilities for namespaces and mounts."""
    held = _effective()
    missing = [name for name, bit in _NEEDED.items() if not held >> bit & 1]
    if missing:
        what = f"needs {' and '.join(missing)}, which this process does not have"
        raise InputError(Problem(f"lab {lab}", what, "run it as root, for example with sudo"))


def _effective() -> int:
    for line in _STATUS.read_text(encoding="ascii").splitlines():
        if line.startswith("CapEff:"):
            return int(line.split()[1], 16)
    return 0

"""The sources start programs as lists of words, and nothing that was sent is evaluated."""

import ast
from collections.abc import Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[3]
PACKAGES = ("dataplane", "emulator", "metrics", "nic_drivers", "traffic_profiles")
FORBIDDEN = {
    "eval",
    "exec",
    "system",
    "popen",
    "create_subprocess_shell",
    "getoutput",
    "unsafe_load",
}


def calls(path: Path) -> Iterator[tuple[str, ast.Call]]:
    """Return the calls in a file with the last part of what is called."""
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.Call):
            function = node.func
            yield getattr(function, "attr", getattr(function, "id", "")), node


@pytest.mark.parametrize("package", PACKAGES)
def test_no_shell_is_ever_started(package: str) -> None:
    """Nor is a pickle read, nor a YAML document with objects."""
    found = [
        f"{path.relative_to(ROOT)}:{call.lineno} {name}"
        for path in (ROOT / package).rglob("*.py")
        for name, call in calls(path)
        if name in FORBIDDEN
        or any(
            keyword.arg in ("shell", "allow_pickle")
            and not (isinstance(keyword.value, ast.Constant) and keyword.value.value is False)
            for keyword in call.keywords
        )
    ]
    assert found == []

"""A YAML file as plain values with the line of every key.

Nothing here knows what the keys mean; sweep files are read with it as well.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import yaml

from dataplane.errors import InputError, Problem

__all__ = ["Document", "KeyPath", "dotted", "read_document"]

KeyPath = tuple[str | int, ...]
"""Keys and list positions from the root of a document."""

_LARGEST_FILE_BYTES = 16 * 2**20


@dataclass(slots=True)
class Document:
    """The values of a YAML file and where they stand."""

    source: str
    """Path of the file, as the user knows it."""
    data: dict[str, Any]
    """The values."""
    lines: dict[KeyPath, int] = field(default_factory=dict)
    """Key path -> line, counted from 1."""
    options: dict[KeyPath, str] = field(default_factory=dict)
    """Key paths that a command-line option has set -> the option as given."""

    def problem(self, path: KeyPath, what: str, remedy: str) -> Problem:
        """A problem at `path`: with the option that set it, else with the line of the file."""
        for length in range(len(path), -1, -1):
            option = self.options.get(path[:length])
            if option is not None:
                return Problem(option, what, remedy, dotted(path))
        return Problem(self.source, what, remedy, self._place(path))

    def _place(self, path: KeyPath) -> str:
        for length in range(len(path), 0, -1):
            line = self.lines.get(path[:length])
            if line is not None:
                return f"line {line}: {dotted(path)}"
        return dotted(path)


def dotted(path: Iterable[str | int]) -> str:
    """The path as the user writes it after `--set`: `topology.links.0.rate_gbps`."""
    return ".".join(str(part) for part in path)


def read_document(path: Path) -> Document:
    """Read a YAML file whose root is a mapping.

    Raises `InputError` for a file that can't be read, isn't YAML, has another root, an anchor
    bomb, or a key twice in one mapping.
    """
    source = str(path)
    root = _compose(_read_text(path), source)
    if not isinstance(root, yaml.MappingNode):
        raise InputError(
            Problem(source, "is not a mapping of keys to values", "write `key: value` lines")
        )
    builder = _Builder(source)
    data: dict[str, Any] = builder.build(root, ())
    if builder.problems:
        raise InputError(*builder.problems)
    return Document(source, data, builder.lines)


def _read_text(path: Path) -> str:
    source = str(path)
    try:
        if path.stat().st_size > _LARGEST_FILE_BYTES:
            raise InputError(Problem(source, "is larger than 16 MiB", "give a lab or sweep file"))
        text = path.read_text(encoding="utf-8")
    except UnicodeDecodeError as error:
        raise InputError(
            Problem(source, "is not UTF-8 text", "give a YAML file", f"byte {error.start}")
        ) from error
    except OSError as error:
        raise InputError(
            Problem(source, f"can't be read: {error.strerror}", "give a readable YAML file")
        ) from error
    # JSON is YAML but for tabs between its values; within them JSON writes tabs as escapes.
    return text.replace("\t", " ") if text.lstrip().startswith("{") else text


def _compose(text: str, source: str) -> yaml.Node | None:
    try:
        return yaml.compose(text, Loader=yaml.SafeLoader)
    except yaml.MarkedYAMLError as error:
        mark = error.problem_mark
        place = f"line {mark.line + 1}, column {mark.column + 1}" if mark else ""
        raise InputError(
            Problem(source, f"is not YAML: {error.problem}", "correct the syntax there", place)
        ) from error
    except yaml.YAMLError as error:
        raise InputError(Problem(source, f"is not YAML: {error}", "give a text file")) from error


class _Builder:
    """Turns composed nodes into plain values and remembers the lines."""

    def __init__(self, source: str) -> None:
        self.lines: dict[KeyPath, int] = {}
        self.problems: list[Problem] = []
        self._source = source
        self._constructor = yaml.SafeLoader("")
        self._nodes = 0

    def build(self, node: yaml.Node, path: KeyPath) -> Any:
        self._count(node)
        if isinstance(node, yaml.MappingNode):
            return self._mapping(node, path)
        if isinstance(node, yaml.SequenceNode):
            return [self._entry(child, (*path, index)) for index, child in enumerate(node.value)]
        return self._scalar(node, path)

    def _count(self, node: yaml.Node) -> None:
        self._nodes += 1
        if self._nodes > 2_000_000:
            line = f"line {node.start_mark.line + 1}"
            raise InputError(
                Problem(self._source, "expands to millions of values", "remove the aliases", line)
            )

    def _entry(self, node: yaml.Node, path: KeyPath) -> Any:
        self.lines[path] = node.start_mark.line + 1
        return self.build(node, path)

    def _mapping(self, node: yaml.MappingNode, path: KeyPath) -> Mapping[Any, Any]:
        values: dict[Any, Any] = {}
        for key_node, value_node in node.value:
            key = self._scalar(key_node, path)
            if not isinstance(key, str | int):
                self._complain(key_node, path, f"has the key {key!r}", "use a name as key")
                continue
            if key in values:
                self._complain(key_node, (*path, key), "is given twice", "remove one of the two")
                continue
            self.lines[(*path, key)] = key_node.start_mark.line + 1
            values[key] = self.build(value_node, (*path, key))
        return values

    def _scalar(self, node: yaml.Node, path: KeyPath) -> Any:
        try:
            return self._constructor.construct_object(node, deep=True)
        except (yaml.YAMLError, ValueError, TypeError, OverflowError):
            self._complain(node, path, "has a value that can't be read", "write a plain value")
            return None

    def _complain(self, node: yaml.Node, path: KeyPath, what: str, remedy: str) -> None:
        place = f"line {node.start_mark.line + 1}: {dotted(path)}"
        self.problems.append(Problem(self._source, what, remedy, place))

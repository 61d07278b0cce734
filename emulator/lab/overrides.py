"""`--set path=value`: the path checked against the model before anything is validated."""

import difflib
import types
from collections.abc import Iterator, Mapping, Sequence
from typing import Annotated, Any, Union, get_args, get_origin

import yaml
from pydantic import BaseModel

from dataplane.errors import InputError, Problem
from emulator.lab.documents import Document, KeyPath, dotted
from emulator.lab.mlx5_names import (
    CLAMP_NAMES,
    CNP_TAG_NAMES,
    NOTIFICATION_NAMES,
    REACTION_NAMES,
)

__all__ = [
    "SHORT_NAMES",
    "all_paths",
    "alternatives",
    "apply_overrides",
    "known_keys",
    "suggestion",
]

SHORT_NAMES: Mapping[str, KeyPath] = {
    "dcqcn": ("congestion_control",),
    "np": ("notification_point",),
    "ecn": ("switches", "ecn"),
    "pfc": ("switches", "pfc"),
}
"""First parts of a path that stand for a longer one: `ecn.kmin_bytes`, `dcqcn.g`."""

_MLX5_KEYS: Mapping[str, frozenset[str]] = {
    "congestion_control": frozenset((*REACTION_NAMES, *CLAMP_NAMES)),
    "notification_point": frozenset((*NOTIFICATION_NAMES, *CNP_TAG_NAMES)),
}


def apply_overrides(document: Document, overrides: Sequence[str], model: type[BaseModel]) -> None:
    """Set each `path=value` in the document; the value is read as YAML.

    Raises one `InputError` with a problem for every override that can't be applied.
    """
    problems: list[Problem] = []
    for text in overrides:
        try:
            _apply(document, text, model)
        except InputError as error:
            problems.extend(error.problems)
    if problems:
        raise InputError(*problems)


def suggestion(word: str, known: Sequence[str]) -> str:
    """`did you mean X?` for a near miss, else the known words."""
    near = difflib.get_close_matches(word, known, n=1, cutoff=0.6)
    if near:
        return f"did you mean {near[0]}?"
    return "known: " + ", ".join(sorted(known)) if known else "remove it"


def known_keys(model: type[BaseModel], path: KeyPath) -> list[str]:
    """The keys that the mapping at `path` may have."""
    candidates: list[Any] = [model]
    for part in path:
        candidates = [inner for kind in candidates for inner in _children(kind, part)]
    return [key for kind in candidates for key in _known_keys(kind)] + _mlx5_keys(path)


def all_paths(model: type[BaseModel]) -> list[str]:
    """Every path of a single value that `--set` takes, for completion and suggestions."""
    return sorted(dotted(path) for path in _leaves(model, ()))


def _apply(document: Document, text: str, model: type[BaseModel]) -> None:
    source = f"--set {text}"
    name, separator, value_text = text.partition("=")
    if not separator or not name.strip():
        raise InputError(Problem(source, "has no path=value form", "write --set path=value"))
    path = _expand(name.strip())
    known = _keys_missing_at(model, path)
    if known is not None:
        position, keys = known
        raise InputError(
            Problem(
                source,
                f"there is no key {dotted(path[: position + 1])}",
                _remedy(path, position, keys, model),
            )
        )
    _store(document, path, _value(value_text, source), source)


def _remedy(path: KeyPath, position: int, keys: Sequence[str], model: type[BaseModel]) -> str:
    near = difflib.get_close_matches(str(path[position]), keys, n=1, cutoff=0.6)
    if near:
        return f"did you mean {dotted((*path[:position], near[0], *path[position + 1 :]))}?"
    elsewhere = [known for known in all_paths(model) if known.split(".")[-1] == str(path[-1])]
    if elsewhere:
        return f"did you mean {elsewhere[0]}?"
    return suggestion(str(path[position]), keys)


def _expand(name: str) -> KeyPath:
    parts: list[str | int] = [int(part) if part.isdigit() else part for part in name.split(".")]
    return (*SHORT_NAMES.get(str(parts[0]), (parts[0],)), *parts[1:])


def _value(text: str, source: str) -> Any:
    try:
        return yaml.safe_load(text)
    except (yaml.YAMLError, ValueError) as error:
        raise InputError(
            Problem(source, "has a value that is not YAML", "quote the value")
        ) from error


def _store(document: Document, path: KeyPath, value: Any, source: str) -> None:
    container: Any = document.data
    for part in path[:-1]:
        container = _descend(container, part, source)
    last = path[-1]
    if isinstance(container, list):
        _list_index(container, last, source)
    container[last] = value
    document.options[path] = source


def _descend(container: Any, part: str | int, source: str) -> Any:
    if isinstance(container, list):
        return container[_list_index(container, part, source)]
    inner = container.get(part)
    if not isinstance(inner, dict | list):
        inner = container[part] = {}
    return inner


def _list_index(container: list[Any], part: str | int, source: str) -> int:
    if isinstance(part, int) and part < len(container):
        return part
    remedy = f"the list has entries 0 to {len(container) - 1}"
    raise InputError(Problem(source, f"there is no entry {part}", remedy))


def _keys_missing_at(model: type[BaseModel], path: KeyPath) -> tuple[int, list[str]] | None:
    """Position of the first part that no model knows, with the keys that it knows there."""
    candidates: list[Any] = [model]
    for position, part in enumerate(path):
        inner: list[Any] = []
        known: list[str] = []
        for candidate in candidates:
            inner.extend(_children(candidate, part))
            known.extend(_known_keys(candidate))
        known.extend(_mlx5_keys(path[:position]))
        if part in _mlx5_keys(path[:position]):
            return None
        if not inner:
            return position, known
        candidates = inner
    return None


def _children(kind: Any, part: str | int) -> Iterator[Any]:
    """The types behind key `part` of a value of type `kind`."""
    if isinstance(kind, type) and issubclass(kind, BaseModel):
        field = kind.model_fields.get(str(part))
        if field is not None:
            yield from alternatives(field.annotation)
        return
    origin, arguments = get_origin(kind), get_args(kind)
    if origin is list and isinstance(part, int):
        yield from alternatives(arguments[0])
    elif origin is dict:
        yield from alternatives(arguments[1])


def _mlx5_keys(path: KeyPath) -> list[str]:
    """The names of mlx5 that the mapping at `path` may have as well."""
    return sorted(_MLX5_KEYS.get(str(path[-1]), ())) if path else []


def _known_keys(kind: Any) -> list[str]:
    if isinstance(kind, type) and issubclass(kind, BaseModel):
        return list(kind.model_fields)
    return []


def alternatives(kind: Any) -> Iterator[Any]:
    """The members of a union, with `Annotated` taken off."""
    origin = get_origin(kind)
    if origin is Annotated:
        yield from alternatives(get_args(kind)[0])
    elif origin in (Union, types.UnionType):
        for member in get_args(kind):
            yield from alternatives(member)
    elif kind is not type(None):
        yield kind


def _leaves(kind: Any, path: KeyPath) -> Iterator[KeyPath]:
    if isinstance(kind, type) and issubclass(kind, BaseModel):
        for name, field in kind.model_fields.items():
            for alternative in alternatives(field.annotation):
                yield from _leaves(alternative, (*path, name))
    else:
        yield path

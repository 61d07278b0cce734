"""Pydantic's validation errors in the project's words: file, line, key, what is right.

pydantic's error types stay in this module.
"""

from typing import Any

from pydantic import BaseModel, ValidationError
from pydantic_core import ErrorDetails

from dataplane.errors import Problem
from emulator.lab.documents import Document, KeyPath
from emulator.lab.overrides import known_keys, suggestion

__all__ = ["problems_of"]


def problems_of(
    error: ValidationError, document: Document, model: type[BaseModel]
) -> list[Problem]:
    """One `Problem` per validation error, in the order of the file."""
    problems = [_problem(detail, document, model) for detail in error.errors()]
    return list(dict.fromkeys(problems))


def _problem(detail: ErrorDetails, document: Document, model: type[BaseModel]) -> Problem:
    path = _path_in_document(detail["loc"], document.data)
    kind = detail["type"]
    if kind == "extra_forbidden":
        known = known_keys(model, path[:-1])
        return document.problem(path, "is not a known key", suggestion(str(path[-1]), known))
    if kind == "missing":
        return document.problem(path, "is missing", f"add `{path[-1]}:`")
    if kind == "union_tag_not_found":
        tag = str(detail["ctx"]["discriminator"]).strip("'")
        return document.problem((*path, tag), "is missing", f"add `{tag}:`")
    if kind == "union_tag_invalid":
        context = detail["ctx"]
        tag = str(context["discriminator"]).strip("'")
        what = f"is {context['tag']!r}"
        return document.problem((*path, tag), what, f"use one of {context['expected_tags']}")
    return document.problem(path, f"is {_shown(detail['input'])}", _remedy(detail))


def _path_in_document(location: tuple[int | str, ...], data: Any) -> KeyPath:
    """The error's location without the union tags that pydantic puts between the keys."""
    path: list[str | int] = []
    container = data
    for position, part in enumerate(location):
        is_last = position == len(location) - 1
        if _has(container, part):
            container = container[part]
        elif not is_last or part == "[key]":
            continue
        path.append(part)
    return tuple(path)


def _has(container: Any, part: str | int) -> bool:
    if isinstance(container, list):
        return isinstance(part, int) and part < len(container)
    return isinstance(container, dict) and part in container


def _shown(value: Any) -> str:
    if isinstance(value, dict | list):
        return "a mapping" if isinstance(value, dict) else "a list"
    if value is None:
        return "empty"
    text = repr(value)
    return text if len(text) <= 60 else text[:57] + "..."


_WANTED = {
    "int_type": "write a whole number without quotes or exponent",
    "int_from_float": "write a whole number",
    "float_type": "write a number without quotes, 1.0e+9 rather than 1e9",
    "bool_type": "write true or false",
    "string_type": "write text; quote it if it looks like a number",
    "list_type": "write a list",
    "dict_type": "write a mapping",
    "model_type": "write a mapping of keys to values",
    "model_attributes_type": "write a mapping of keys to values",
    "finite_number": "write a finite number",
}


def _remedy(detail: ErrorDetails) -> str:
    kind = detail["type"]
    if kind in _WANTED:
        return _WANTED[kind]
    context = detail.get("ctx", {})
    limits = {
        "greater_than": "above {gt}",
        "greater_than_equal": "{ge} or more",
        "less_than": "below {lt}",
        "less_than_equal": "{le} or less",
        "literal_error": "one of {expected}",
        "string_pattern_mismatch": "text that matches {pattern}",
        "string_too_long": "at most {max_length} characters",
        "string_too_short": "at least {min_length} characters",
        "too_short": "at least {min_length} entries",
        "too_long": "at most {max_length} entries",
    }
    if kind in limits:
        return "give " + limits[kind].format(**context)
    return detail["msg"][:1].lower() + detail["msg"][1:]

"""Replaces mlx5's parameter names in a lab file by ours before it is validated."""

from collections.abc import Mapping
from typing import Any

from dataplane.errors import Problem
from emulator.lab.documents import Document, KeyPath
from emulator.lab.mlx5_names import (
    CLAMP_NAMES,
    CNP_TAG_NAMES,
    NOTIFICATION_NAMES,
    REACTION_NAMES,
    Translation,
    clamp_mode,
)

__all__ = ["translate_mlx5_keys"]

_NOTIFICATIONS: KeyPath = ("notification_point",)
_CNP: KeyPath = ("traffic_classes", "cnp")


def translate_mlx5_keys(document: Document) -> list[Problem]:
    """Translate in place; returns what can't be translated."""
    _move_cnp_tags(document)
    problems = _translate(document, _NOTIFICATIONS, NOTIFICATION_NAMES)
    problems += _translate(document, _CNP, CNP_TAG_NAMES)
    for path in _congestion_controls(document):
        problems += _translate(document, path, REACTION_NAMES)
        section = _section(document, path)
        if section is not None:
            problems += _translate_clamp(document, path, section)
    return problems


def _congestion_controls(document: Document) -> list[KeyPath]:
    """Where congestion control can be set: for the lab, and in every class of data packets."""
    further = _at(document.data, ("traffic_classes", "further"))
    count = len(further) if isinstance(further, list) else 0
    classes: list[KeyPath] = [("traffic_classes", "data")]
    classes += [("traffic_classes", "further", index) for index in range(count)]
    return [("congestion_control",), *((*path, "congestion_control") for path in classes)]


def _section(document: Document, path: KeyPath) -> dict[str, Any] | None:
    section = _at(document.data, path)
    return section if isinstance(section, dict) else None


def _at(container: Any, path: KeyPath) -> Any:
    for part in path:
        if isinstance(container, list) and isinstance(part, int) and part < len(container):
            container = container[part]
        elif isinstance(container, dict):
            container = container.get(part)
        else:
            return None
    return container


def _translate(
    document: Document, parent: KeyPath, names: Mapping[str, Translation]
) -> list[Problem]:
    section = _section(document, parent)
    if section is None:
        return []
    problems = []
    for theirs in [key for key in section if key in names]:
        rule = names[theirs]
        path: KeyPath = (*parent, theirs)
        value = section.pop(theirs)
        if (*parent, rule.key) in document.options:
            continue
        problem = _range_problem(document, path, value, rule)
        if problem is None and rule.key in section and path not in document.options:
            what = f"is the mlx5 name of {rule.key}, which is given as well"
            problem = document.problem(path, what, "keep one of the two")
        if problem is not None:
            problems.append(problem)
            continue
        _rename(document, path, (*parent, rule.key))
        section[rule.key] = rule.convert(value)
    return problems


def _range_problem(
    document: Document, path: KeyPath, value: Any, rule: Translation
) -> Problem | None:
    if isinstance(value, int) and not isinstance(value, bool) and rule.low <= value <= rule.high:
        return None
    remedy = f"give a whole number from {rule.low} to {rule.high} ({rule.unit})"
    return document.problem(path, f"is {value!r}", remedy)


def _translate_clamp(document: Document, parent: KeyPath, section: dict[str, Any]) -> list[Problem]:
    given = {name: section.pop(name) for name in CLAMP_NAMES if name in section}
    if not given or (*parent, "clamp_target_rate") in document.options:
        return []
    problems = [
        document.problem((*parent, name), f"is {value!r}", "give 0 or 1")
        for name, value in given.items()
        if value not in (0, 1)
    ]
    if not problems:
        always, after_time = (
            given.get(name, off) for name, off in zip(CLAMP_NAMES, (0, 1), strict=True)
        )
        for name in given:
            _rename(document, (*parent, name), (*parent, "clamp_target_rate"))
        section["clamp_target_rate"] = clamp_mode(always, after_time)
    return problems


def _move_cnp_tags(document: Document) -> None:
    """Take the tags of notifications to their class, where they are translated."""
    section = _section(document, _NOTIFICATIONS)
    if section is None:
        return
    for name in [key for key in section if key in CNP_TAG_NAMES]:
        classes = document.data.setdefault("traffic_classes", {})
        cnp = classes.setdefault("cnp", {}) if isinstance(classes, dict) else None
        if isinstance(cnp, dict):
            cnp[name] = section.pop(name)
            _rename(document, (*_NOTIFICATIONS, name), (*_CNP, name))


def _rename(document: Document, old: KeyPath, new: KeyPath) -> None:
    if old in document.options:
        document.options[new] = document.options[old]
    if old in document.lines:
        document.lines[new] = document.lines[old]

"""Process groups: which global ranks a group's name means on a rank.

A name is resolved by the group file, then by what the trace itself declares, then by convention:
no name, an empty one and `0` are the whole world. Names are opaque text; the same name may mean
different ranks on different ranks.
"""

import json
import re
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from dataplane.errors import InputError, Problem
from traffic_profiles.chakra.table import TraceTable

__all__ = ["WORLD", "GroupResolution", "read_group_file", "resolve_groups"]

WORLD = "world"
"""Name of the group of all ranks when a trace gives it none."""
_WORLD_NAMES = ("", "0")
_SHOWN_AT_MOST = 8
# A string, kept; or a comment to the end of the line, dropped.
_STRING_OR_COMMENT = re.compile(r'("(?:[^"\\]|\\.)*")|//[^\n]*')
_WHOLE_NUMBER = re.compile(r"\d+\.0+")

Ranks = tuple[int, ...]


@dataclass(frozen=True, slots=True)
class GroupResolution:
    """What the groups that the traces use were resolved to."""

    groups: Mapping[str, Ranks]
    """Unique name -> global ranks in group order."""
    names: Mapping[int, Mapping[str | None, str]]
    """Rank -> name in its trace (None: no name) -> unique name."""


def resolve_groups(
    tables: Mapping[int, TraceTable],
    used: Mapping[int, Iterable[str | None]],
    *,
    source: Path,
    group_file: Path | None,
    world_group: bool,
) -> GroupResolution:
    """Resolve the groups that each rank's collectives use.

    With `world_group` a group that nothing declares is the whole world. Raises `InputError`.
    """
    world = tuple(sorted(tables))
    from_file = read_group_file(group_file) if group_file else {}
    resolved: dict[tuple[int, str | None], Ranks] = {}
    undeclared: defaultdict[str, list[int]] = defaultdict(list)
    problems: list[Problem] = []
    for rank, names in used.items():
        declared, complaint = _declared_groups(tables[rank], world)
        for name in names:
            ranks = _ranks_of(name, from_file, declared, world)
            if ranks is None and world_group:
                ranks = world
            if ranks is not None:
                resolved[rank, name] = ranks
            elif complaint is not None:
                problems.append(complaint)
            else:
                undeclared[str(name)].append(rank)
    if undeclared:
        problems.append(_undeclared(undeclared, source))
    problems += _bad_groups(resolved, world, group_file or source)
    if problems:
        raise InputError(*dict.fromkeys(problems))
    return _with_unique_names(resolved)


def _ranks_of(
    name: str | None, from_file: Mapping[str, Ranks], declared: Mapping[str, Ranks], world: Ranks
) -> Ranks | None:
    if name is None:
        return world
    for groups in (from_file, declared):
        for spelling in (name, _whole_number(name)):
            if spelling in groups:
                return groups[spelling]
    return world if name in _WORLD_NAMES else None


def _whole_number(name: str) -> str:
    """`3` for `3.0`: some writers pass a group's number through a floating-point column."""
    return name.partition(".")[0] if _WHOLE_NUMBER.fullmatch(name) else name


def read_group_file(path: Path) -> dict[str, Ranks]:
    """Read a `comm_group` JSON: name -> global ranks; `//` comments are allowed.

    Raises `InputError`.
    """
    expected = 'write {"name": [global ranks], ...}'
    try:
        text = path.read_text(encoding="utf-8")
        content = json.loads(_without_comments(text), object_pairs_hook=_unique_keys)
    except OSError as error:
        raise InputError(Problem(str(path), error.strerror or str(error), expected)) from None
    except json.JSONDecodeError as error:
        place = f"line {error.lineno} column {error.colno}"
        raise InputError(Problem(str(path), f"no JSON: {error.msg}", expected, place)) from None
    except ValueError as error:
        raise InputError(Problem(str(path), str(error), expected)) from None
    if not _is_group_map(content):
        what = "the file does not map names to lists of ranks"
        raise InputError(Problem(str(path), what, expected))
    return {name: tuple(ranks) for name, ranks in content.items()}


def _without_comments(text: str) -> str:
    return _STRING_OR_COMMENT.sub(lambda match: match[1] or "", text)


def _unique_keys(pairs: Sequence[tuple[str, Any]]) -> dict[str, Any]:
    content = dict(pairs)
    for name, value in pairs:
        if content[name] != value:
            raise ValueError(f"group '{name}' is declared twice, with different ranks")
    return content


def _is_group_map(content: object) -> bool:
    return isinstance(content, dict) and all(
        isinstance(ranks, list) and all(type(rank) is int for rank in ranks)
        for ranks in content.values()
    )


def _declared_groups(table: TraceTable, world: Ranks) -> tuple[dict[str, Ranks], Problem | None]:
    """Groups that the trace's `process_group:init` node lists, and what is wrong with it.

    A group without ranks is the whole world of the traced job, which may be larger than what
    there are traces of.
    """
    text = table.process_groups_json
    if text is None:
        return {}, None
    # The node holds Python's text of a list with one string: ['[{...}]'].
    begin, end = text.find("[{"), text.rfind("}]")
    try:
        listed = json.loads(text[begin : end + 2]) if begin >= 0 else []
        groups = {
            str(group["pg_name"]): tuple(int(rank) for rank in group["ranks"])
            or tuple(range(int(group.get("group_size", len(world)))))
            for group in listed
        }
    except (ValueError, KeyError, TypeError):
        what = "the list of process groups in the trace is cut or damaged"
        return {}, Problem(str(table.path), what, "declare the groups with --group-file FILE")
    return groups, None


def _undeclared(groups: Mapping[str, Sequence[int]], source: Path) -> Problem:
    users = [f"'{name}' (used by ranks {_shown(ranks)})" for name, ranks in groups.items()]
    plural = len(groups) > 1
    what = f"process group{'s' * plural} {_shown(users)} {'are' if plural else 'is'} not declared"
    remedy = "declare it with --group-file FILE, or say --world-group if it is the whole world"
    beside = _group_files_beside(source, set(groups))
    if beside:
        remedy += f" (--group-file {source / beside[0]} looks right)"
    return Problem(str(source), what, remedy)


def _shown(items: Sequence[object]) -> str:
    more = ", ..." if len(items) > _SHOWN_AT_MOST else ""
    return ", ".join(map(str, items[:_SHOWN_AT_MOST])) + more


def _group_files_beside(source: Path, names: set[str]) -> list[str]:
    """Names of files in the trace's directory that declare one of the groups."""
    directory = source if source.is_dir() else source.parent
    found = []
    for path in sorted(directory.glob("*.json")):
        try:
            declared = read_group_file(path)
        except (InputError, UnicodeDecodeError):
            continue
        if names & set(declared):
            found.append(path.name)
    return found


def _bad_groups(
    resolved: Mapping[tuple[int, str | None], Ranks], world: Ranks, source: Path
) -> list[Problem]:
    problems = []
    for (rank, name), ranks in resolved.items():
        what = ""
        if len(set(ranks)) < len(ranks):
            what = f"process group '{name}' lists a rank twice: {list(ranks)}"
        elif not set(ranks) <= set(world):
            absent = sorted(set(ranks) - set(world))[:_SHOWN_AT_MOST]
            what = f"process group '{name}' has ranks without a trace: {absent}"
        elif rank not in ranks:
            what = f"rank {rank} uses process group '{name}', of which it is no member"
        if what:
            remedy = f"give groups over ranks {world[0]}..{world[-1]} that hold their users"
            problems.append(Problem(str(source), what, remedy))
    return problems


def _with_unique_names(resolved: Mapping[tuple[int, str | None], Ranks]) -> GroupResolution:
    groups: dict[str, Ranks] = {}
    names: defaultdict[int, dict[str | None, str]] = defaultdict(dict)
    for (rank, name), ranks in resolved.items():
        unique = name or WORLD
        if groups.setdefault(unique, ranks) != ranks:
            unique = f"{unique}@{ranks[0]}"
            if groups.setdefault(unique, ranks) != ranks:
                unique = f"{name or WORLD}@{','.join(map(str, ranks))}"
                groups[unique] = ranks
        names[rank][name] = unique
    return GroupResolution(groups, names)

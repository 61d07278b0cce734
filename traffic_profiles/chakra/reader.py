"""Trace files in: which file is which rank, and their columns.

The rank is the number in a file's name; what a file contains is decided by its content alone.
"""

import os
import re
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from itertools import islice
from pathlib import Path

import dataplane
from dataplane.errors import InputError, Problem
from traffic_profiles.chakra.table import TraceTable

__all__ = ["rank_of", "read_trace", "read_traces", "trace_files"]

_TRACE_NAME = re.compile(
    r"(?:(?P<stem>.*)\.)?(?P<rank>\d+)\.(?:et|eg|chakra|pb|json)(?:\.gz)?", re.IGNORECASE
)
_EXPECTED = "name the files <prefix>.<rank>.et, one for each rank from 0"
_LISTED_AT_MOST = 10


def read_traces(path: Path | Sequence[Path]) -> dict[int, TraceTable]:
    """Read the traces of all ranks: a directory, a prefix of file names, or a list of files.

    Raises `InputError` with every problem: missing and doubled ranks, files that cannot be read.
    """
    files = trace_files(path)
    workers = min(len(files), os.cpu_count() or 1)
    problems: list[Problem] = []
    tables: dict[int, TraceTable] = {}
    with ThreadPoolExecutor(max_workers=workers) as pool:
        futures = {rank: pool.submit(read_trace, file, rank) for rank, file in files.items()}
        for rank, future in futures.items():
            try:
                tables[rank] = future.result()
            except InputError as error:
                problems.extend(error.problems)
    if problems:
        raise InputError(*problems)
    return tables


def rank_of(file: Path) -> int | None:
    """Rank that a file's name claims, or None."""
    match = _TRACE_NAME.fullmatch(file.name)
    return int(match["rank"]) if match else None


def read_trace(path: Path, rank: int) -> TraceTable:
    """Read one rank's file. Raises `InputError`."""
    try:
        columns = dataplane.read_trace(path)
    except dataplane.TraceError as error:
        _, offset, what, remedy = error.args
        raise InputError(Problem(str(path), what, remedy, place=f"byte {offset}")) from None
    columns["groups"] = tuple(columns["groups"])
    return TraceTable(rank=rank, path=path, **columns)


def trace_files(path: Path | Sequence[Path]) -> dict[int, Path]:
    """File of each rank, ranks ascending from 0. Raises `InputError`."""
    if isinstance(path, Path):
        source, candidates = str(path), _candidates(path)
    else:
        source, candidates = "traces", list(path)
    claims = _claims(candidates)
    if not claims:
        what = f"there is no trace file{_listing(candidates)}"
        raise InputError(Problem(source, what, _EXPECTED))
    _refuse_several_sets(source, claims)
    return _one_file_per_rank(source, claims)


def _candidates(path: Path) -> list[Path]:
    """Files that `path` may mean: of a directory, or with a prefix, or the file itself."""
    if path.is_dir():
        return sorted(entry for entry in path.iterdir() if entry.is_file())
    if path.is_file():
        return [path]
    if path.parent.is_dir():
        beginning = path.name + "."
        found = sorted(entry for entry in path.parent.iterdir() if entry.name.startswith(beginning))
        if found:
            return found
    raise InputError(Problem(str(path), "there is no such directory", "name a trace directory"))


def _claims(candidates: Iterable[Path]) -> dict[int, list[Path]]:
    """Rank -> the files whose name claims it."""
    claims: defaultdict[int, list[Path]] = defaultdict(list)
    for file in candidates:
        rank = rank_of(file)
        if rank is not None:
            claims[rank].append(file)
    return dict(sorted(claims.items()))


def _stem(file: Path) -> str:
    match = _TRACE_NAME.fullmatch(file.name)
    return (match["stem"] or "") if match else file.name


def _refuse_several_sets(source: str, claims: Mapping[int, list[Path]]) -> None:
    stems = sorted({_stem(file) for files in claims.values() for file in files})
    if len(stems) > 1:
        what = f"there are traces of {len(stems)} jobs: {', '.join(stems[:_LISTED_AT_MOST])}"
        remedy = f"name one of them, for example {Path(source) / stems[0]}"
        raise InputError(Problem(source, what, remedy))


def _one_file_per_rank(source: str, claims: Mapping[int, list[Path]]) -> dict[int, Path]:
    problems = [
        Problem(
            source,
            f"rank {rank} has {len(files)} files: {', '.join(file.name for file in files)}",
            "keep one file for each rank",
        )
        for rank, files in claims.items()
        if len(files) > 1
    ]
    gaps = (rank for rank in range(max(claims)) if rank not in claims)
    missing = list(islice(gaps, _LISTED_AT_MOST + 1))
    if missing:
        shown = ", ".join(map(str, missing[:_LISTED_AT_MOST]))
        more = ", ..." if len(missing) > _LISTED_AT_MOST else ""
        plural = "s" if len(missing) > 1 else ""
        verb = "have" if len(missing) > 1 else "has"
        what = f"rank{plural} {shown}{more} of 0..{max(claims)} {verb} no file"
        problems.append(Problem(source, what, "give the trace of every rank from 0 on"))
    if problems:
        raise InputError(*problems)
    return {rank: files[0] for rank, files in claims.items()}


def _listing(candidates: Sequence[Path]) -> str:
    if not candidates:
        return ""
    names = ", ".join(file.name for file in candidates[:_LISTED_AT_MOST])
    return f" among {names}"

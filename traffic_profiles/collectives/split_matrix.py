"""Reads the matrix of an uneven all-to-all: JSON (a list of rows) or CSV (one row per line)."""

import json
from pathlib import Path

import numpy as np

from dataplane.errors import InputError, Problem
from traffic_profiles.collectives.algorithm import SplitMatrix

__all__ = ["read_split_matrix"]

REMEDY = "give n rows of n numbers that are not negative, as JSON list of lists or as CSV"


def read_split_matrix(file: Path) -> SplitMatrix:
    """Read weights `[n, n]`, row = source, column = destination; raises `InputError`."""
    try:
        text = file.read_text(encoding="utf-8")
        weights = np.array(parse(text), dtype=np.float64)
    except (OSError, ValueError) as error:
        raise InputError(Problem(str(file), f"not a split matrix: {error}", REMEDY)) from error
    if weights.ndim != 2 or weights.shape[0] != weights.shape[1]:
        what = f"the matrix has shape {weights.shape}, not n rows of n"
        raise InputError(Problem(str(file), what, REMEDY))
    if not np.isfinite(weights).all() or (weights < 0).any():
        row, column = np.argwhere(~(np.isfinite(weights) & (weights >= 0)))[0]
        what = f"weight {weights[row, column]}"
        place = f"row {row + 1} column {column + 1}"
        raise InputError(Problem(str(file), what, REMEDY, place=place))
    return SplitMatrix(weights)


def parse(text: str) -> list[list[float]]:
    """Read rows of numbers; raises `ValueError`."""
    if text.lstrip().startswith("["):
        rows = json.loads(text)
        if not all(isinstance(row, list) for row in rows):
            raise ValueError("JSON that is not a list of lists")
        return [[float(value) for value in row] for row in rows]
    return [[float(value) for value in line.split(",")] for line in text.splitlines() if line]

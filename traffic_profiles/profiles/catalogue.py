"""The named profiles, and how one becomes trace files."""

from collections.abc import Mapping, Sequence
from dataclasses import asdict
from pathlib import Path

import numpy as np

from dataplane.errors import InputError, Problem
from traffic_profiles.collectives.choice import AlgorithmRule
from traffic_profiles.profiles.llama2_step import LLAMA2_STEP
from traffic_profiles.profiles.llama_step import LLAMA_STEP
from traffic_profiles.profiles.microbenchmarks import (
    ALL_GATHER,
    ALL_REDUCE,
    ALL_TO_ALL,
    INCAST,
    PERMUTATION,
)
from traffic_profiles.profiles.mixed_collectives import MIXED_COLLECTIVES
from traffic_profiles.profiles.moe_training import MOE_TRAINING
from traffic_profiles.profiles.profile import GeneratedProfile, Profile

__all__ = ["PROFILES", "generate"]

PROFILES: Mapping[str, Profile] = {
    profile.name: profile
    for profile in (
        MOE_TRAINING,
        LLAMA_STEP,
        LLAMA2_STEP,
        MIXED_COLLECTIVES,
        ALL_REDUCE,
        ALL_GATHER,
        ALL_TO_ALL,
        INCAST,
        PERMUTATION,
    )
}
"""Every profile by name."""


def generate(
    name: str, directory: Path, *, ranks: int, seed: int = 1, **parameters: object
) -> GeneratedProfile:
    """Write a profile's traces to `directory`, `<name>.<rank>.et`, as real Chakra v0.0.4 files.

    Parameters are numbers or their text. A profile with uneven all-to-alls writes their matrices
    beside, as `<name>.<node>.csv`, for `split_matrix_file`. Equal arguments give equal bytes.
    Raises `InputError` for an unknown profile or parameter.
    """
    if name not in PROFILES:
        what, remedy = f"there is no profile '{name}'", f"one of {', '.join(PROFILES)}"
        raise InputError(Problem("profile", what, remedy))
    profile = PROFILES[name]
    given = profile.check(ranks, parameters)
    job = profile.build(ranks, seed, given)
    directory.mkdir(parents=True, exist_ok=True)
    files = [directory / f"{name}.{rank}.et" for rank in range(ranks)]
    for file, trace in zip(files, job.traces, strict=True):
        trace.write(file)
    write_matrices(directory, name, job.algorithms)
    return GeneratedProfile(name, directory, files, asdict(given), job.algorithms)


def write_matrices(directory: Path, name: str, rules: Sequence[AlgorithmRule]) -> None:
    """Write the split matrices of rules, named by the nodes they are for."""
    for rule in rules:
        if rule.split_matrix is not None:
            node = rule.node.strip("*").strip().replace(" ", "-")
            np.savetxt(
                directory / f"{name}.{node}.csv", rule.split_matrix.weights, "%.6g", delimiter=","
            )

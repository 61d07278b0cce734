"""One training step of a mixture-of-experts model, data-parallel in its dense part.

Forward, each layer computes attention, dispatches tokens to the experts' ranks (all-to-all),
computes the experts and combines (all-to-all). Backward runs the same in reverse and begins the
all-reduce of a layer's dense gradients as soon as they exist, so that it shares the fabric with the
all-to-alls of the layers before. Experts are not equally liked: a seed decides how tokens spread.
"""

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from traffic_profiles.chakra import CollectiveType, TraceBuilder
from traffic_profiles.collectives.algorithm import SplitMatrix
from traffic_profiles.collectives.choice import AlgorithmRule
from traffic_profiles.profiles.profile import Profile, ProfileJob, parameter

__all__ = ["MOE_TRAINING"]

COMPUTE_STREAM, EXPERT_STREAM, GRADIENT_STREAM = 7, 20, 21
Weights = npt.NDArray[np.float64]


@dataclass(frozen=True, slots=True)
class MoeTraining:
    """Parameters of the step."""

    layers: int = parameter(4, "layers, each with a dense and an expert part", minimum=1)
    experts_per_rank: int = parameter(4, "experts on each rank", minimum=1)
    dense_bytes: int = parameter(16 << 20, "bytes of a layer's dense gradients: its all-reduce")
    token_bytes: int = parameter(4 << 20, "bytes of a rank's tokens: each all-to-all")
    dense_us: int = parameter(60, "microseconds of a layer's dense part forward; backward twice")
    expert_us: int = parameter(80, "microseconds of a layer's experts forward at even load")
    skew: float = parameter(0.5, "spread of the experts' popularity (log-normal sigma); 0 is even")
    jitter: float = parameter(0.03, "relative spread of compute times over the ranks")


def build(ranks: int, seed: int, given: MoeTraining) -> ProfileJob:
    """Write the step of every rank."""
    random = np.random.default_rng(seed)
    shares = [token_shares(ranks, given, random) for _ in range(given.layers)]
    traces = [TraceBuilder() for _ in range(ranks)]
    for rank, trace in enumerate(traces):
        factor = max(0.0, random.normal(1.0, given.jitter))
        loads = [float(share[:, rank].sum()) for share in shares]
        write_step(trace, ranks, given, factor, loads)
    return ProfileJob(traces, split_rules(shares) if given.skew > 0 else ())


def token_shares(ranks: int, given: MoeTraining, random: np.random.Generator) -> Weights:
    """Share of each rank's tokens (row) that goes to the experts of each rank: rows sum to 1."""
    experts = (ranks, given.experts_per_rank)
    popularity = np.exp(random.normal(0, given.skew, experts))
    taste = np.exp(random.normal(0, given.skew / 2, (ranks, *experts)))
    by_rank = (popularity * taste).sum(axis=2)
    shares: Weights = by_rank / by_rank.sum(axis=1, keepdims=True)
    return shares


def split_rules(shares: list[Weights]) -> list[AlgorithmRule]:
    """Bind each layer's all-to-alls to its shares: there as they are, back transposed."""
    rules = []
    for layer, share in enumerate(shares):
        for node, matrix in (("dispatch", share), ("combine", share.T.copy())):
            rules.append(
                AlgorithmRule(
                    "all_to_all",
                    "pairwise",
                    node=f"layer {layer} {node}*",
                    split_matrix=SplitMatrix(matrix),
                )
            )
    return rules


def write_step(
    trace: TraceBuilder, ranks: int, given: MoeTraining, factor: float, loads: list[float]
) -> None:
    """Write one rank's step; `loads` are its experts' loads by layer, 1 is even."""
    everyone = tuple(range(ranks))
    trace.process_groups({"data": everyone, "experts": everyone}, world_size=ranks)
    dense_us, expert_us = round(given.dense_us * factor), given.expert_us * factor
    last: list[int] = []
    for layer in range(given.layers):
        last = [compute(trace, f"layer {layer} dense forward", dense_us, last)]
        for part in ("dispatch", "experts", "combine"):
            time_us = round(expert_us * loads[layer])
            last = [expert_part(trace, f"layer {layer} {part} forward", given, time_us, last)]
    gradients = []
    for layer in reversed(range(given.layers)):
        # The gradient of a combine goes to the experts like a dispatch, and the reverse.
        for part in ("dispatch", "experts", "combine"):
            time_us = round(2 * expert_us * loads[layer])
            last = [expert_part(trace, f"layer {layer} {part} backward", given, time_us, last)]
        last = [compute(trace, f"layer {layer} dense backward", 2 * dense_us, last)]
        gradients.append(
            trace.collective(
                f"layer {layer} dense gradients",
                CollectiveType.ALL_REDUCE,
                given.dense_bytes,
                after=last,
                group="data",
                stream=GRADIENT_STREAM,
            )
        )
    compute(trace, "optimizer", dense_us, gradients)


def expert_part(
    trace: TraceBuilder, name: str, given: MoeTraining, time_us: int, after: list[int]
) -> int:
    """Write the experts' computation or one of the all-to-alls around it."""
    if "experts" in name:
        return compute(trace, name, time_us, after)
    return trace.collective(
        name,
        CollectiveType.ALL_TO_ALL,
        given.token_bytes,
        after=after,
        group="experts",
        stream=EXPERT_STREAM,
    )


def compute(trace: TraceBuilder, name: str, time_us: int, after: list[int]) -> int:
    """Write a computation on the compute stream."""
    return trace.compute(name, time_us, after=after, stream=COMPUTE_STREAM)


MOE_TRAINING = Profile(
    "moe-training",
    "one step of a mixture-of-experts model: gradient all-reduces overlap uneven all-to-alls",
    MoeTraining,
    build,
)
"""The demonstration: about 5 ms on eight 400 Gb/s NICs."""

"""One training step of a dense transformer, tensor-parallel within groups, data-parallel across.

Forward and backward, each layer all-reduces its activations in the tensor group after attention
and after its feed-forward part. Backward, a layer's gradients are reduced to shards in the data
group while the layers before go on; the updated shards are gathered at the end.
"""

from dataclasses import dataclass

from dataplane.errors import InputError, Problem
from traffic_profiles.chakra import CollectiveType, TraceBuilder
from traffic_profiles.profiles.profile import Profile, ProfileJob, parameter

__all__ = ["LLAMA_STEP"]

COMPUTE_STREAM, TENSOR_STREAM, DATA_STREAM = 7, 20, 21
PARTS = ("attention", "feed-forward")


@dataclass(frozen=True, slots=True)
class LlamaStep:
    """Parameters of the step."""

    layers: int = parameter(4, "transformer layers", minimum=1)
    tensor_parallel: int = parameter(4, "consecutive ranks that share each layer", minimum=1)
    activation_bytes: int = parameter(8 << 20, "bytes of each tensor-parallel all-reduce")
    gradient_bytes: int = parameter(16 << 20, "bytes of a rank's gradients of a layer")
    part_us: int = parameter(50, "microseconds of half a layer forward; backward twice")


def build(ranks: int, _: int, given: LlamaStep) -> ProfileJob:
    """Write the step of every rank; raises `InputError` if the groups do not fit."""
    width = given.tensor_parallel
    if ranks % width != 0:
        what = f"{ranks} ranks do not make groups of {width}"
        remedy = "give a tensor_parallel that divides the number of ranks"
        raise InputError(Problem("profile llama-step", what, remedy, place="tensor_parallel"))
    groups = {f"tensor{n}": range(n * width, (n + 1) * width) for n in range(ranks // width)}
    groups |= {f"data{n}": range(n, ranks, width) for n in range(width)}
    traces = [TraceBuilder() for _ in range(ranks)]
    for rank, trace in enumerate(traces):
        trace.process_groups(groups, world_size=ranks)
        write_step(trace, given, f"tensor{rank // width}", f"data{rank % width}", ranks // width)
    return ProfileJob(traces)


def write_step(
    trace: TraceBuilder, given: LlamaStep, tensor: str, data: str, data_parallel: int
) -> None:
    """Write one rank's step with its tensor and data group."""
    last: list[int] = []
    for layer in range(given.layers):
        for part in PARTS:
            last = half_layer(trace, f"layer {layer} {part} forward", given, tensor, 1, last)
    shards = []
    for layer in reversed(range(given.layers)):
        for part in reversed(PARTS):
            last = half_layer(trace, f"layer {layer} {part} backward", given, tensor, 2, last)
        shards.append(
            trace.collective(
                f"layer {layer} gradients",
                CollectiveType.REDUCE_SCATTER,
                given.gradient_bytes,
                after=last,
                group=data,
                stream=DATA_STREAM,
            )
        )
    update = trace.compute("optimizer", given.part_us, after=shards, stream=COMPUTE_STREAM)
    for layer in range(given.layers):
        trace.collective(
            f"layer {layer} parameters",
            CollectiveType.ALL_GATHER,
            given.gradient_bytes // data_parallel,
            after=[update],
            group=data,
            stream=DATA_STREAM,
        )


def half_layer(
    trace: TraceBuilder, name: str, given: LlamaStep, tensor: str, factor: int, last: list[int]
) -> list[int]:
    """Write a computation and the all-reduce of its activations."""
    done = trace.compute(name, factor * given.part_us, after=last, stream=COMPUTE_STREAM)
    reduced = trace.collective(
        f"{name} activations",
        CollectiveType.ALL_REDUCE,
        given.activation_bytes,
        after=[done],
        group=tensor,
        stream=TENSOR_STREAM,
    )
    return [reduced]


LLAMA_STEP = Profile(
    "llama-step",
    "one step of a dense transformer: tensor-parallel all-reduces, sharded data parallelism",
    LlamaStep,
    build,
)
"""A synthetic step of a Llama-like model."""

"""One training step of Llama 2 with tensor, pipeline and data parallelism, as in Megatron-LM.

Ranks: tensor first, then data, then pipeline: rank = (stage x data + replica) x tensor + part.

* Tensor parallel: four all-reduces of 2 b s h bytes per layer and micro-batch, two of them
  backward. With `scale_up_gigabytes_per_s` they stay within the host (NVLink) and are time on the
  compute stream; with 0 they cross the network.
* Pipeline parallel: one forward, one backward (1F1B). Each of the `tensor_parallel` ranks of a
  stage sends its part of the activations, 2 b s h / t bytes, to the next, and gradients back.
* Data parallel with a sharded optimizer: the gradients of a layer are reduced to shards in the data
  group as soon as the last micro-batch has them; the updated parameters are gathered at the end.

Source: Narayanan et al., SC 2021, sections 2 to 4; Rajbhandari et al., "ZeRO", SC 2020 (stage 1).
There is no recomputation of activations, and no interleaving of stages.
"""

from collections.abc import Iterator
from dataclasses import dataclass

from dataplane.errors import InputError, Problem
from traffic_profiles.chakra import CollectiveType, TraceBuilder
from traffic_profiles.profiles.llama2_model import BYTES_PER_VALUE, MODELS, Llama2Model
from traffic_profiles.profiles.profile import Profile, ProfileJob, parameter

__all__ = ["LLAMA2_STEP"]

COMPUTE_STREAM, TENSOR_STREAM, DATA_STREAM = 7, 20, 21
HALF_LAYERS = ("attention", "feed-forward")


@dataclass(frozen=True, slots=True)
class Llama2Step:
    """Parameters of the step."""

    model: int = parameter(7, "billions of parameters: 7, 13 or 70", minimum=7)
    tensor_parallel: int = parameter(2, "consecutive ranks that share each layer", minimum=1)
    pipeline_parallel: int = parameter(2, "stages; layers are shared out evenly", minimum=1)
    batch_sequences: int = parameter(
        1024, "sequences of 4096 tokens in a step, all replicas: 4 M tokens (paper, 2.1)", minimum=1
    )
    micro_batch_sequences: int = parameter(1, "sequences of one micro-batch", minimum=1)
    gpu_teraflops: int = parameter(312, "peak of a GPU in bfloat16: A100, NVIDIA", minimum=1)
    gpu_use: float = parameter(
        0.5, "share of the peak that is used (SC 2021: 0.44 to 0.52)", minimum=0.01
    )
    scale_up_gigabytes_per_s: int = parameter(
        300, "bandwidth of a GPU within its host, each way (A100: 600 in all); 0: by the network"
    )
    optimizer_us: int = parameter(5_000, "microseconds of the update")


@dataclass(frozen=True, slots=True)
class Place:
    """One rank's part of the step."""

    given: Llama2Step
    model: Llama2Model
    ranks: int
    rank: int

    @property
    def data_parallel(self) -> int:
        """Replicas."""
        return self.ranks // (self.given.tensor_parallel * self.given.pipeline_parallel)

    @property
    def stage(self) -> int:
        """Stage of the pipeline."""
        return self.rank // self.stage_ranks

    @property
    def stage_ranks(self) -> int:
        """Ranks of a stage: what lies between a rank and the same one of the next stage."""
        return self.ranks // self.given.pipeline_parallel

    @property
    def layers(self) -> int:
        """Layers of a stage."""
        return self.model.layers // self.given.pipeline_parallel

    @property
    def micro_batches(self) -> int:
        """Micro-batches of a replica."""
        replica = self.given.batch_sequences // self.data_parallel
        return replica // self.given.micro_batch_sequences

    @property
    def tensor_group(self) -> str:
        """Ranks that share this one's layers."""
        return f"tensor{self.rank // self.given.tensor_parallel}"

    @property
    def data_group(self) -> str:
        """Ranks with the same part of the same stage."""
        parts = self.given.tensor_parallel
        return f"data{self.stage * parts + self.rank % parts}"

    @property
    def layer_us(self) -> float:
        """Forward pass of a layer, without its all-reduces; backward twice."""
        flops = self.model.layer_forward_flops(self.given.micro_batch_sequences)
        used_per_us = self.given.gpu_teraflops * 1e6 * self.given.gpu_use
        return flops / self.given.tensor_parallel / used_per_us

    @property
    def scale_up_us(self) -> float:
        """The two all-reduces of a layer, forward or backward, if they stay within the host."""
        parts, speed = self.given.tensor_parallel, self.given.scale_up_gigabytes_per_s
        if speed == 0:
            return 0.0
        size = self.model.activation_bytes(self.given.micro_batch_sequences)
        return 2 * 2 * (parts - 1) / parts * size / (speed * 1e3)

    @property
    def crosses_network(self) -> bool:
        """The all-reduces of tensor parallelism are communication of the trace."""
        return self.given.scale_up_gigabytes_per_s == 0 and self.given.tensor_parallel > 1

    @property
    def boundary_bytes(self) -> int:
        """What a rank sends to the next stage for a micro-batch."""
        whole = self.model.activation_bytes(self.given.micro_batch_sequences)
        return whole // self.given.tensor_parallel

    def gradient_bytes(self, layer: int) -> int:
        """Gradients of this rank's part of a layer; the outermost have embedding and output too."""
        parameters = self.model.layer_parameters
        first = self.stage == 0 and layer == 0
        last = self.stage == self.given.pipeline_parallel - 1 and layer == self.layers - 1
        parameters += (first + last) * self.model.embedding_parameters
        return parameters // self.given.tensor_parallel * BYTES_PER_VALUE


def build(ranks: int, _: int, given: Llama2Step) -> ProfileJob:
    """Write the step of every rank; raises `InputError` if the numbers do not fit each other."""
    problems = list(misfits(ranks, given))
    if problems:
        raise InputError(*problems)
    places = [Place(given, MODELS[given.model], ranks, rank) for rank in range(ranks)]
    groups: dict[str, list[int]] = {}
    for place in places:
        groups.setdefault(place.data_group, []).append(place.rank)
        if place.crosses_network:
            groups.setdefault(place.tensor_group, []).append(place.rank)
    traces = []
    for place in places:
        trace = TraceBuilder()
        own = {name: members for name, members in groups.items() if place.rank in members}
        trace.process_groups(own, world_size=ranks)
        Step(trace, place).write()
        traces.append(trace)
    return ProfileJob(traces)


def misfits(ranks: int, given: Llama2Step) -> Iterator[Problem]:
    """What does not divide."""

    def problem(place: str, what: str, remedy: str) -> Problem:
        return Problem("profile llama2-step", what, remedy, place=place)

    if given.model not in MODELS:
        yield problem("model", f"{given.model} is no size of Llama 2", "give 7, 13 or 70")
        return
    model, replica = MODELS[given.model], given.tensor_parallel * given.pipeline_parallel
    if ranks % replica:
        what = f"{ranks} ranks are no multiple of {replica}, tensor_parallel x pipeline_parallel"
        yield problem("ranks", what, "give parallelisms whose product divides the number of ranks")
        return
    if model.layers % given.pipeline_parallel:
        what = f"{given.pipeline_parallel} does not divide {model.layers} layers"
        yield problem("pipeline_parallel", what, "give a divisor of the layers")
    if model.key_value_heads % given.tensor_parallel:
        what = f"{given.tensor_parallel} does not divide {model.key_value_heads} key-value heads"
        yield problem("tensor_parallel", what, "give a divisor of the heads")
    share = ranks // replica * given.micro_batch_sequences
    if given.batch_sequences % share:
        what = f"{given.batch_sequences} is no multiple of {share}, replicas x micro-batch"
        yield problem("batch_sequences", what, f"give a multiple of {share}")


class Step:
    """Writes one rank's step."""

    def __init__(self, trace: TraceBuilder, place: Place) -> None:
        self.trace = trace
        self.place = place
        self.computed: list[int] = []
        """What the compute stream has to wait for."""
        self.shards: list[int] = []

    def write(self) -> None:
        """One forward, one backward, then the update."""
        place = self.place
        ahead = min(place.given.pipeline_parallel - place.stage - 1, place.micro_batches)
        for batch in range(ahead):
            self.forward(batch)
        for batch in range(place.micro_batches):
            if batch + ahead < place.micro_batches:
                self.forward(batch + ahead)
            self.backward(batch)
        self.update()

    def forward(self, batch: int) -> None:
        """Receive, compute all layers of the stage, send."""
        place, name = self.place, f"micro-batch {batch} forward"
        after = self.received(place.rank - place.stage_ranks, name, 2 * batch, place.stage > 0)
        self.compute(name, place.layers, 1, after)
        if place.stage + 1 < place.given.pipeline_parallel:
            self.sent(place.rank + place.stage_ranks, name, 2 * batch)

    def backward(self, batch: int) -> None:
        """Receive, compute, send; the last micro-batch hands over gradients layer by layer."""
        place, name = self.place, f"micro-batch {batch} backward"
        comes = place.stage + 1 < place.given.pipeline_parallel
        after = self.received(place.rank + place.stage_ranks, name, 2 * batch + 1, comes)
        if batch + 1 < place.micro_batches:
            self.compute(name, place.layers, 2, after)
        else:
            for layer in reversed(range(place.layers)):
                self.compute(f"{name} layer {layer}", 1, 2, after)
                after = []
                self.reduce_gradients(layer)
        if place.stage > 0:
            self.sent(place.rank - place.stage_ranks, name, 2 * batch + 1)

    def received(self, source: int, name: str, tag: int, comes: bool) -> list[int]:
        """The receive of a micro-batch, if something comes, behind what was computed last."""
        if not comes:
            return []
        size = self.place.boundary_bytes
        after = self.computed
        return [self.trace.receive(f"{name} receive", source, size, tag=tag, after=after)]

    def sent(self, destination: int, name: str, tag: int) -> None:
        """Send what was computed last."""
        size = self.place.boundary_bytes
        self.trace.send(f"{name} send", destination, size, tag=tag, after=self.computed)

    def compute(self, name: str, layers: int, factor: int, after: list[int]) -> None:
        """Some layers: one computation, or with the all-reduces that cross the network."""
        place = self.place
        if not place.crosses_network:
            time_us = round(layers * (factor * place.layer_us + place.scale_up_us))
            self.run(name, time_us, after)
            return
        for layer in range(layers):
            for half in HALF_LAYERS:
                part = f"{name} {layer} {half}"
                self.run(part, round(factor * place.layer_us / 2), after)
                after = []
                reduced = self.trace.collective(
                    f"{part} activations",
                    CollectiveType.ALL_REDUCE,
                    place.model.activation_bytes(place.given.micro_batch_sequences),
                    after=self.computed,
                    group=place.tensor_group,
                    stream=TENSOR_STREAM,
                )
                self.computed = [reduced]

    def run(self, name: str, time_us: int, after: list[int]) -> None:
        """A computation behind the one before and behind `after`."""
        before = [*self.computed, *after]
        node = self.trace.compute(name, time_us, after=before, stream=COMPUTE_STREAM)
        self.computed = [node]

    def reduce_gradients(self, layer: int) -> None:
        """Reduce a layer's gradients to shards among the replicas."""
        if self.place.data_parallel == 1:
            return
        shard = self.trace.collective(
            f"layer {layer} gradients",
            CollectiveType.REDUCE_SCATTER,
            self.place.gradient_bytes(layer),
            after=self.computed,
            group=self.place.data_group,
            stream=DATA_STREAM,
        )
        self.shards.append(shard)

    def update(self) -> None:
        """The optimizer on this rank's shards, and the gathering of the parameters."""
        place = self.place
        self.run("optimizer", place.given.optimizer_us, self.shards)
        if place.data_parallel == 1:
            return
        for layer in range(place.layers):
            self.trace.collective(
                f"layer {layer} parameters",
                CollectiveType.ALL_GATHER,
                place.gradient_bytes(layer) // place.data_parallel,
                after=self.computed,
                group=place.data_group,
                stream=DATA_STREAM,
            )


LLAMA2_STEP = Profile(
    "llama2-step",
    "one step of Llama 2 (7, 13 or 70 billion): tensor, pipeline and data parallel as Megatron-LM",
    Llama2Step,
    build,
)
"""A synthetic step with the published dimensions of Llama 2."""

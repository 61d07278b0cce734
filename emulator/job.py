"""The job: a lab and a workload brought together, ready to be run or predicted.

read -> bind -> validate -> compile -> place. Everything that can be wrong with the input is found
here, before a packet or an event exists. Nothing here starts anything.
"""

import json
import tempfile
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, fields, replace
from pathlib import Path
from typing import Any, Literal

import dataplane
from dataplane.errors import InputError, Problem
from emulator.capture import capture_config
from emulator.job_config import job_config
from emulator.lab import Lab, LoadedLab, load
from emulator.link_events import event_config
from emulator.provenance import describe_job
from traffic_profiles.binding import bind
from traffic_profiles.binding_options import BindingOptions
from traffic_profiles.chakra import read_traces
from traffic_profiles.collectives.choice import AlgorithmRule
from traffic_profiles.compilation import CompiledJob, CompileOptions, compile_workload
from traffic_profiles.profiles import generate
from traffic_profiles.program import Program
from traffic_profiles.traffic_classes import TrafficClassRule
from traffic_profiles.validate import validate
from traffic_profiles.workload import Workload

__all__ = ["Job", "JobRequest", "TrafficSource", "build_job", "read_traffic"]


@dataclass(frozen=True, slots=True)
class JobRequest:
    """What the user asks for."""

    lab: str
    """Lab file or name."""
    overrides: Sequence[str] = ()
    """`path=value` changes of the lab."""
    trace: Path | None = None
    """Directory of traces; `None` takes the profile."""
    profile: str | None = None
    """Built-in job, NAME or NAME,KEY=VALUE,...; `None` takes the lab's default."""
    binding: BindingOptions = field(default_factory=BindingOptions)
    """How traces are bound."""
    iterations: int = 1
    """Repetitions of the traces."""
    size_scale: float = 1.0
    """Factor on message sizes."""
    compute_scale: float = 1.0
    """Factor on the durations of compute nodes; 0 leaves communication only."""
    seed: int = 1
    """Seed of every random choice."""
    model: Literal["packets", "fluid"] = "packets"
    """What a prediction moves over the links: packets, or flows that share them."""
    capture: Sequence[str] = ()
    """Links whose frames are kept; globs."""
    capture_packets: int = 10_000
    """Frames that are kept at most."""


@dataclass(frozen=True, slots=True, eq=False)
class TrafficSource:
    """Traces or a profile, bound and validated."""

    workload: Workload
    algorithms: Sequence[AlgorithmRule] = ()
    """Rules that belong to a profile; they come after the lab's."""
    parameters: Mapping[str, float] = field(default_factory=dict)
    """Parameters of a profile, as they were used."""


@dataclass(frozen=True, slots=True, eq=False)
class Job:
    """Everything that a run or a prediction needs."""

    request: JobRequest
    loaded: LoadedLab
    """The lab, its file and its fabric."""
    source: TrafficSource
    compiled: CompiledJob
    config: dict[str, Any]
    """The engine's configuration, as `dataplane/src/config` describes it."""
    run_info: dict[str, Any]
    """Facts for `run.json`: resolved configuration, versions, seed, provenance, warnings."""

    @property
    def lab(self) -> Lab:
        """The lab."""
        return self.loaded.lab

    @property
    def config_json(self) -> str:
        """The engine's configuration as text."""
        return json.dumps(self.config)

    @property
    def programs(self) -> list[Program]:
        """One program per rank."""
        return self.compiled.programs

    def native_programs(self) -> list[dataplane.Program]:
        """The programs as the engine takes them."""
        return [native_program(program) for program in self.programs]

    def row_names(self, rank: int, rows: Iterable[Any]) -> list[str]:
        """Names of trace rows of a rank, for the timeline; empty for rows out of range."""
        table = self.source.workload.tables[rank]
        return [table.name(row) if row < len(table) else "" for row in map(int, rows)]


def build_job(
    request: JobRequest,
    *,
    source: TrafficSource | None = None,
    on_phase: Callable[[str], None] = lambda _phase: None,
) -> Job:
    """Read, bind, validate, compile and place; `source` spares the first three steps.

    `on_phase` is called with a word at the beginning of each long step. Raises `InputError` with
    what is wrong.
    """
    loaded = load(request.lab, request.overrides)
    if source is None:
        on_phase("reading")
        source = read_traffic(request, loaded)
    _check_ranks(source.workload, loaded)
    on_phase("compiling")
    compiled = compile_workload(source.workload, _compile_options(loaded, request, source))
    config = job_config(loaded.lab, loaded.fabric, seed=request.seed)
    config["capture"] = capture_config(request.capture, request.capture_packets, loaded.fabric)
    config["events"] = event_config(loaded, source.workload, compiled)
    run_info = describe_job(request, loaded, source, compiled)
    return Job(request, loaded, source, compiled, config, run_info)


def read_traffic(request: JobRequest, loaded: LoadedLab) -> TrafficSource:
    """Read, bind and validate the traces or the profile that a request names.

    Raises `InputError` with what is wrong.
    """
    if request.trace is not None:
        return TrafficSource(_read(request.trace, request))
    profile = request.profile or loaded.lab.default_profile
    name, parameters = split_profile(profile)
    with tempfile.TemporaryDirectory(prefix="rankwire-") as directory:
        # Written as trace files and read back by the reader of all traces.
        made = generate(
            name,
            Path(directory),
            ranks=len(loaded.fabric.nics),
            seed=request.seed,
            **parameters,
        )
        workload = _read(Path(directory), request)
    # For messages: the directory is gone by then.
    workload = replace(workload, source=f"profile {profile}")
    return TrafficSource(workload, made.algorithms, made.parameters)


def split_profile(text: str) -> tuple[str, dict[str, str]]:
    """Name and parameters of NAME,KEY=VALUE,...; raises `InputError`."""
    name, *entries = text.split(",")
    parameters = {}
    for entry in entries:
        key, separator, value = entry.partition("=")
        if not separator or not key:
            source = f"profile {text}"
            raise InputError(Problem(source, f"{entry!r} has no KEY=VALUE form", "write KEY=VALUE"))
        parameters[key.strip().replace("-", "_")] = value.strip()
    return name, parameters


def native_program(program: Program) -> dataplane.Program:
    """One program as the engine takes it."""
    return dataplane.Program(
        rank=program.rank,
        kind=program.kind,
        peer=program.peer,
        size_bytes=program.size_bytes,
        duration_ps=program.duration_ps,
        lane=program.lane,
        peer_op=program.peer_op,
        channel=program.channel,
        traffic_class=program.traffic_class,
        instance=program.instance,
        row=program.row,
        dep_offsets=program.dep_offsets,
        deps=program.deps,
    )


def _read(source: Path, request: JobRequest) -> Workload:
    workload = bind(read_traces(source), source=source, options=request.binding)
    validate(workload)
    return workload


def _check_ranks(workload: Workload, loaded: LoadedLab) -> None:
    ranks, nics = len(workload.ranks), len(loaded.fabric.nics)
    if ranks > nics:
        raise InputError(
            Problem(
                str(loaded.path),
                f"has {nics} NICs, but {workload.source} has {ranks} ranks",
                f"take a lab with at least {ranks} NICs, or a trace of at most {nics} ranks",
                "topology",
            )
        )


def _compile_options(
    loaded: LoadedLab, request: JobRequest, source: TrafficSource
) -> CompileOptions:
    collectives = loaded.lab.collectives
    return CompileOptions(
        iterations=request.iterations,
        size_scale=request.size_scale,
        compute_scale=request.compute_scale,
        algorithms=(*_rules(loaded), *source.algorithms),
        nccl_channels=collectives.channels if collectives.messages == "nccl" else None,
        traffic_classes=_class_rules(loaded),
    )


def _rules(loaded: LoadedLab) -> list[AlgorithmRule]:
    rules = []
    for rule in loaded.lab.collectives.rules:
        values = rule.model_dump(exclude={"split_matrix_file"})
        matrix = rule.split_matrix_file
        path = None if matrix is None else loaded.path.parent / matrix
        rules.append(AlgorithmRule(**values, split_matrix_file=path))
    return rules


def _class_rules(loaded: LoadedLab) -> list[TrafficClassRule]:
    own = {field.name for field in fields(TrafficClassRule)}
    return [
        TrafficClassRule(**item.model_dump(include=own))
        for item in loaded.lab.traffic_classes.further
    ]

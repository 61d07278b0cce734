"""The sweep file: which lab and job, which settings, which figure decides."""

from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any, Literal

from pydantic import Field, ValidationError

from dataplane.errors import InputError
from emulator.lab.base import LabPart
from emulator.lab.documents import read_document
from emulator.lab.problems import problems_of
from emulator.sweep.expectations import Expectation, expectation_problems
from emulator.sweep.figures import figure_problem

__all__ = ["LoadedSweep", "SweepSpec", "load_sweep"]


class SweepSpec(LabPart):
    """One sweep."""

    name: Annotated[str, Field(pattern=r"^[a-z0-9][a-z0-9-]*$", max_length=63)]
    """Lower case letters, digits and dashes; names the directory."""
    description: str = ""
    """What the sweep is to find out."""
    lab: str | Annotated[list[str], Field(min_length=1)]
    """Lab file, relative to this file, or the name of a lab; a list makes the lab one more
    setting, `lab`."""
    mode: Literal["predict", "run"] = "predict"
    """Virtual time, several points at once; or real packets, one point after the other."""
    model: Literal["packets", "fluid"] = "packets"
    """What predictions move over the links: packets, or flows that share them."""
    trace: str | None = None
    """Directory of traces, relative to this file."""
    profile: str | None = None
    """Built-in job; left out with `trace` left out, the lab's default."""
    iterations: Annotated[int, Field(ge=1)] = 1
    """Repetitions of the traces in every point."""
    size_scale: Annotated[float, Field(gt=0)] = 1.0
    """Factor on message sizes."""
    compute_scale: Annotated[float, Field(ge=0)] = 1.0
    """Factor on the durations of compute nodes; 0 leaves communication only."""
    set: dict[str, Any] = Field(default_factory=dict)
    """Settings of every point: path -> value, as with `--set`."""
    grid: Annotated[dict[str, list[Any]], Field(min_length=1)]
    """Path -> values; every combination is a point. `dcqcn.`, `ecn.`, `pfc.` and `np.` stand for
    the longer paths."""
    skip_impossible: bool = False
    """Leave out combinations that the lab refuses, such as kmin above kmax."""
    seeds: Annotated[list[Annotated[int, Field(ge=0)]], Field(min_length=1)] = Field(default=[1])
    """Every combination is repeated with each."""
    rank_by: str = "all.p99_ns"
    """Figure that ranks the points: KIND.FIGURE, for example all_reduce.p99_ns, all.busbw_GBps."""
    expect: list[Expectation] = Field(default_factory=list)
    """What the points are expected to show; the sweep fails where it does not hold."""


@dataclass(frozen=True, slots=True)
class LoadedSweep:
    """A checked sweep and the file that it stands in."""

    spec: SweepSpec
    path: Path

    @property
    def labs(self) -> dict[str, str]:
        """Each lab as the sweep file names it -> as `emulator.lab.load` takes it."""
        given = [self.spec.lab] if isinstance(self.spec.lab, str) else self.spec.lab
        beside = {name: self.path.parent / name for name in given}
        return {name: str(path) if path.is_file() else name for name, path in beside.items()}

    @property
    def grid(self) -> dict[str, list[Any]]:
        """Setting -> values; the lab is one of them if there are several."""
        labs = list(self.labs)
        return ({"lab": labs} if len(labs) > 1 else {}) | self.spec.grid

    @property
    def trace(self) -> Path | None:
        """Directory of the traces."""
        return None if self.spec.trace is None else self.path.parent / self.spec.trace


def load_sweep(path: Path) -> LoadedSweep:
    """Read and check a sweep file; raises `InputError` with every problem found."""
    document = read_document(path)
    try:
        spec = SweepSpec.model_validate(document.data)
    except ValidationError as error:
        raise InputError(*problems_of(error, document, SweepSpec)) from None
    problems = [
        document.problem(("grid", name), "has no values", "list at least one value")
        for name, values in spec.grid.items()
        if not values
    ]
    wrong = figure_problem(spec.rank_by)
    if wrong is not None:
        problems.append(document.problem(("rank_by",), *wrong))
    if spec.trace is not None and spec.profile is not None:
        problems.append(
            document.problem(("profile",), "is given beside a trace", "keep one of the two")
        )
    if spec.mode == "run" and spec.model == "fluid":
        what = "is fluid, but the mode is run"
        problems.append(document.problem(("model",), what, "give `mode: predict`"))
    if len(set(spec.seeds)) != len(spec.seeds):
        problems.append(document.problem(("seeds",), "name a seed twice", "name each once"))
    sweep = LoadedSweep(spec, path)
    problems += [
        document.problem(*wrong) for wrong in expectation_problems(spec.expect, sweep.grid)
    ]
    if problems:
        raise InputError(*problems)
    return sweep

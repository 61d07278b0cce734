"""What the fluid model of a prediction leaves out of a job: refused, or said."""

from collections.abc import Mapping, Sequence
from typing import Any

from dataplane.errors import InputError, Problem
from emulator.job import Job
from metrics.fluid import fluid_facts, fluid_label

__all__ = ["check_model", "model_facts", "model_warnings"]

_SPREADING = {"flowlet", "packet", "shortest_queue"}


def check_model(job: Job) -> None:
    """Raise `InputError` for what a prediction by flows can't do."""
    if job.request.model == "packets":
        return
    problems = []
    if job.config.get("capture") is not None:
        what = "is asked of a prediction by flows, which has no frames"
        remedy = "leave out --capture, or predict with --model packets"
        problems.append(Problem("command line", what, remedy, "--capture"))
    if problems:
        raise InputError(*problems)


def model_facts(job: Job) -> dict[str, Any]:
    """Facts for `run.json`, with the model's warnings among the job's."""
    if job.request.model == "packets":
        return {"model": "packets"}
    facts = fluid_facts(job.lab.congestion_control.algorithm)
    warnings = [fluid_label(facts), *model_warnings(job.config)]
    return facts | {"warnings": [*job.run_info["warnings"], *warnings]}


def model_warnings(config: Mapping[str, Any]) -> Sequence[str]:
    """What flows leave out of this job."""
    warnings = []
    if config["impairments"]:
        warnings.append("flows meet none of the lab's impairments")
    modes = {switch["path_selection"]["mode"] for switch in config["switches"]}
    if modes & _SPREADING:
        warnings.append(
            "switches spread packets or flowlets by chance or by their queues; flows take an equal "
            "share of every equal-cost path"
        )
    if config.get("further_classes"):
        warnings.append("all classes of data share links alike, whatever their priorities")
    return warnings

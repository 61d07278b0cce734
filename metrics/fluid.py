"""What a prediction by flows is, in words: its label, what it can't tell, and its measured error.

The error stands in `fluid_error.json`, which `python -m bench.fluid --write` measures and writes.
"""

import json
from collections.abc import Mapping
from functools import lru_cache
from importlib.resources import files
from typing import Any

from metrics.presentation import share_text

__all__ = ["ERROR_FILE", "NOT_MODELLED", "error_sentence", "fluid_facts", "fluid_label", "is_fluid"]

ERROR_FILE = "fluid_error.json"
NOT_MODELLED = "not modelled"
"""What stands in the place of a figure that flows don't have."""


def is_fluid(run: Mapping[str, Any]) -> bool:
    """Whether `run.json` is that of a prediction by flows."""
    return run.get("model") == "fluid"


@lru_cache(maxsize=1)
def measured_error() -> Mapping[str, Any]:
    """Error of completion times against packets, with its conditions, as it was measured."""
    text = files("metrics").joinpath(ERROR_FILE).read_text(encoding="utf-8")
    found: dict[str, Any] = json.loads(text)
    return found


def fluid_facts(congestion_control: str) -> dict[str, Any]:
    """What `run.json` holds about the model: its error where that congestion control held."""
    measured = measured_error()
    error = {
        "congestion_control": congestion_control,
        **measured["by_congestion_control"].get(congestion_control, {}),
        "conditions": measured["conditions"],
    }
    return {"model": "fluid", "model_error": error}


def error_sentence(error: Mapping[str, Any]) -> str:
    """The measured error with its conditions."""
    control = error["congestion_control"]
    if "count" not in error:
        return f"Its error against packets has not been measured under {control}"
    parts = (
        f"{title} {share_text(error[f'{title}_absolute_error_ratio'])}"
        for title in ("median", "p95", "worst")
    )
    return (
        f"Measured error of a collective's completion time against packets under {control}: "
        f"{', '.join(parts)} ({error['count']} collectives; {error['conditions']})"
    )


def fluid_label(run: Mapping[str, Any]) -> str:
    """What every reader of the figures must know."""
    text = (
        "Predicted by flows that share links max-min fairly, not by packets: no queues, marks, "
        "pauses, losses, nor the time that congestion control takes to find its rates."
    )
    return f"{text} {error_sentence(run['model_error'])}."

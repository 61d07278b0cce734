"""From a lab to another tool's topology file, and to the binding that leads back."""

import json
from dataclasses import dataclass

import yaml

from emulator.exchange.to_containerlab import Images, containerlab_export
from emulator.exchange.to_infragraph import infragraph_annotations, infragraph_export
from emulator.exchange.view import view_of
from emulator.lab import LoadedLab

__all__ = ["EXPORT_FORMATS", "ExportedLab", "export_lab"]

EXPORT_FORMATS = ("containerlab", "infragraph")
"""Formats that a lab can be written in."""


@dataclass(frozen=True, slots=True)
class ExportedLab:
    """A lab in another tool's format."""

    text: str
    """The topology file."""
    binding_text: str
    """The binding file with which an import makes the same lab of it."""
    annotation_text: str = ""
    """InfraGraph's annotations: ranks and addresses."""


def export_lab(
    loaded: LoadedLab, file_format: str, *, images: Images | None = None, as_json: bool = False
) -> ExportedLab:
    """The lab in one of `EXPORT_FORMATS`, as YAML or JSON; `images` are containerlab's."""
    view = view_of(loaded)
    if file_format == "containerlab":
        document, binding = containerlab_export(view, images or Images())
        annotations = ""
    else:
        document, binding = infragraph_export(view)
        annotations = _yaml(infragraph_annotations(view))
    head = f"# Exported from the lab {loaded.lab.name} by `rankwire lab export`.\n"
    text = json.dumps(document, indent=2) + "\n" if as_json else head + _yaml(document)
    note = f"# With the exported file it makes the lab {loaded.lab.name} again.\n"
    return ExportedLab(text, note + _yaml(binding), annotations)


def _yaml(document: dict[str, object]) -> str:
    return yaml.safe_dump(
        document, sort_keys=False, default_flow_style=None, width=100, allow_unicode=True
    )

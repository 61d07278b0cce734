"""From another tool's topology file to the text of a lab file that has nothing wrong."""

import copy
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TypeVar

import yaml
from pydantic import BaseModel, ValidationError

from dataplane.errors import InputError, Problem
from emulator.exchange.assembly import assemble
from emulator.exchange.binding import Binding
from emulator.exchange.containerlab import ContainerlabFile, containerlab_graph
from emulator.exchange.graph import Graph
from emulator.exchange.infragraph import infragraph_graph
from emulator.exchange.infragraph_file import InfragraphFile
from emulator.lab.documents import Document, KeyPath, read_document
from emulator.lab.fabric import Fabric
from emulator.lab.loading import check_document
from emulator.lab.model import Lab
from emulator.lab.problems import problems_of

__all__ = ["ImportedLab", "import_lab"]

_Model = TypeVar("_Model", bound=BaseModel)


@dataclass(frozen=True, slots=True)
class ImportedLab:
    """What an import came to."""

    lab: Lab
    fabric: Fabric
    text: str
    """The lab file."""
    notes: Sequence[str]
    """What was left out, one sentence each."""


def import_lab(path: Path, binding: Path | None = None) -> ImportedLab:
    """The lab of a containerlab or InfraGraph file, with what its binding file adds.

    Raises `InputError` with everything that is wrong with the file, the binding and the lab that
    they make.
    """
    file = read_document(path)
    bound = Document("no binding file", {}) if binding is None else read_document(binding)
    graph = _graph(file)
    graph.name = graph.name or path.name.partition(".")[0]
    parsed = _validated(Binding, bound)
    assembly = assemble(graph, parsed, file, bound)
    if assembly.problems:
        raise InputError(*assembly.problems)
    values = copy.deepcopy(assembly.document.data)
    lab, fabric = check_document(assembly.document)
    text = _text(values, path, binding)
    return ImportedLab(lab, fabric, text, assembly.notes)


def _graph(file: Document) -> Graph:
    problems: list[Problem] = []

    def complain(path: KeyPath, what: str, remedy: str) -> None:
        problems.append(file.problem(path, what, remedy))

    if isinstance(file.data.get("topology"), dict) and "nodes" in file.data["topology"]:
        graph = containerlab_graph(_validated(ContainerlabFile, file), complain)
    elif "instances" in file.data or "devices" in file.data:
        graph = infragraph_graph(_validated(InfragraphFile, file), complain)
    else:
        what = "is neither a containerlab topology nor an InfraGraph infrastructure"
        remedy = "give a file with `topology: {nodes: ...}` or with `instances:` and `devices:`"
        raise InputError(Problem(file.source, what, remedy))
    if problems:
        raise InputError(*problems)
    return graph


def _validated(model: type[_Model], document: Document) -> _Model:
    try:
        return model.model_validate(document.data)
    except ValidationError as error:
        raise InputError(*problems_of(error, document, model)) from None


def _text(values: dict[str, object], path: Path, binding: Path | None) -> str:
    origin = path.name if binding is None else f"{path.name} and {binding.name}"
    body = yaml.safe_dump(
        values, sort_keys=False, default_flow_style=None, width=100, allow_unicode=True
    )
    return f"# Imported from {origin} by `rankwire lab import`.\n{body}"

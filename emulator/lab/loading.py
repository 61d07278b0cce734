"""From a lab's name or file to a checked `Lab`, or to one error with everything that is wrong."""

import difflib
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from pydantic import ValidationError

import lab_configs
from dataplane.errors import InputError, Problem
from emulator.lab.checks import check_lab
from emulator.lab.documents import Document, read_document
from emulator.lab.fabric import Fabric
from emulator.lab.mlx5_keys import translate_mlx5_keys
from emulator.lab.model import Lab
from emulator.lab.overrides import apply_overrides
from emulator.lab.problems import problems_of

__all__ = [
    "LoadedLab",
    "check_document",
    "find_lab",
    "lab_directory",
    "list_labs",
    "load",
    "load_lab",
]


@dataclass(frozen=True, slots=True)
class LoadedLab:
    """A checked lab, where it came from and what it expands to."""

    lab: Lab
    path: Path
    fabric: Fabric


def load_lab(name_or_path: str | Path, overrides: Sequence[str] = ()) -> Lab:
    """The lab of that name or file, with `path=value` overrides applied.

    Raises `InputError` with every problem found.
    """
    return load(name_or_path, overrides).lab


def load(name_or_path: str | Path, overrides: Sequence[str] = ()) -> LoadedLab:
    """As `load_lab`, with the path of the file and the expanded fabric."""
    path = find_lab(name_or_path)
    document = read_document(path)
    apply_overrides(document, overrides, Lab)
    lab, fabric = check_document(document)
    return LoadedLab(lab, path, fabric)


def check_document(document: Document) -> tuple[Lab, Fabric]:
    """The lab of a document, whose mlx5 keys are translated in place, and its fabric.

    Raises `InputError` with every problem found.
    """
    problems = translate_mlx5_keys(document)
    try:
        lab = Lab.model_validate(document.data)
    except ValidationError as error:
        raise InputError(*problems, *problems_of(error, document, Lab)) from None
    fabric, found = check_lab(lab, document)
    if problems or found:
        raise InputError(*problems, *found)
    return lab, fabric


def lab_directory() -> Path:
    """Where the labs that come with rankwire are."""
    return Path(lab_configs.__file__).parent


def list_labs() -> dict[str, Path]:
    """Name -> file of every lab that comes with rankwire."""
    return {path.stem: path for path in sorted(lab_directory().glob("*.yaml"))}


def find_lab(name_or_path: str | Path) -> Path:
    """The file that the user means: a path, or the name of a lab that comes with rankwire.

    Raises `InputError` when there is neither.
    """
    text = str(name_or_path)
    known = list_labs()
    if text in known and not Path(text).is_file():
        return known[text]
    path = Path(text)
    if path.is_file() or path.suffix in {".yaml", ".yml"} or "/" in text:
        if not path.exists():
            raise InputError(Problem(text, "there is no such file", _near(text, list(known))))
        return path
    raise InputError(Problem(text, "there is no lab of this name", _near(text, list(known))))


def _near(text: str, known: list[str]) -> str:
    near = difflib.get_close_matches(Path(text).stem, known, n=1, cutoff=0.5)
    if near:
        return f"did you mean {near[0]}?"
    return f"give a lab file, or one of {', '.join(known)}"

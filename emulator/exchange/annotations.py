"""InfraGraph's annotations: `rank` of accelerators or NICs and `ipaddress` of NICs, in and out.

Source: `InfraGraphService.annotate_graph` of the package `infragraph` 3.1.0; the attributes' names
are those of its own tests.
"""

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any

from emulator.exchange.binding import Annotation
from emulator.exchange.graph import GraphEnd
from emulator.exchange.slices import indices

__all__ = ["Annotated", "annotated"]

_SEGMENT = re.compile(r"([A-Za-z0-9_-]+)(?:\[([^\]]*)\])?")
_Segment = tuple[str, str | None]
"""A name and its slice; `None` is all."""


@dataclass(slots=True)
class Annotated:
    """What annotations say of NICs."""

    values: dict[GraphEnd, dict[str, Any]] = field(default_factory=dict)
    """NIC -> rank and address, as a binding has them."""
    positions: dict[GraphEnd, int] = field(default_factory=dict)
    """NIC -> the annotation that said it last."""
    problems: list[tuple[int, str, str]] = field(default_factory=list)
    """Position of an annotation, what is wrong with it, what would be right."""


def annotated(annotations: Sequence[Annotation], ends: Sequence[GraphEnd]) -> Annotated:
    """What annotations say of the NICs at these ends; other attributes are passed over."""
    result = Annotated()
    for position, annotation in enumerate(annotations):
        for item in annotation.attributes:
            if item.attribute not in {"rank", "ipaddress"}:
                continue
            found = list(_matching(annotation.name, ends, through_xpu=item.attribute == "rank"))
            if not found:
                what = f"names {annotation.name}, which is no linked NIC"
                remedy = "name one, as host[0]nic[1], or for ranks an accelerator, as host[0]xpu[1]"
                result.problems.append((position, what, remedy))
            elif item.attribute == "rank" and not item.value.isdecimal():
                what = f"gives {annotation.name} the rank {item.value!r}"
                result.problems.append((position, what, "give a whole number"))
            for end in found:
                _note(result, end, position, item.attribute, item.value)
    return result


def _note(result: Annotated, end: GraphEnd, position: int, attribute: str, value: str) -> None:
    values = result.values.setdefault(end, {})
    result.positions[end] = position
    if attribute == "ipaddress":
        values["address"] = value.partition("/")[0]
    elif value.isdecimal():
        values["rank"] = int(value)


def _matching(name: str, ends: Sequence[GraphEnd], *, through_xpu: bool) -> Iterator[GraphEnd]:
    """NICs that a node expression means: by their own name, or by the accelerator beside them.

    Accelerator k of a host is beside its k-th linked NIC.
    """
    segments = _segments(name)
    for end in ends:
        if _fits(segments, _pairs(f"{end.node}.{end.port}")):
            yield end
    if not through_xpu or len(segments) != 2:
        return
    nic_names = {_pairs(end.port)[0][0] for end in ends}
    for node in dict.fromkeys(end.node for end in ends):
        beside = [end for end in ends if end.node == node]
        if segments[1][0] not in nic_names and _fits(segments[:1], _pairs(node)):
            yield from (beside[index] for index in indices(segments[1][1] or "", len(beside)) or ())


def _segments(name: str) -> list[_Segment]:
    """`host[0]nic[0:2]` or `host.0.nic.1` as names and slices."""
    if "." in name and "[" not in name:
        return [(part, str(index)) for part, index in _pairs(name)]
    return [(match[1], match[2]) for match in _SEGMENT.finditer(name)]


def _pairs(dotted: str) -> list[tuple[str, int]]:
    """`host.0.nic.1` as names and numbers."""
    parts = dotted.split(".")
    return [
        (name, int(index)) for name, index in zip(parts[::2], parts[1::2], strict=False)
        if index.isdecimal()
    ]  # fmt: skip


def _fits(segments: Sequence[_Segment], pairs: Sequence[tuple[str, int]]) -> bool:
    """Whether an expression means the node with these names and numbers, or what contains it.

    Indices from the end are none, for how many there are is not known here.
    """
    if not segments or len(segments) > len(pairs) or any("-" in (s or "") for _, s in segments):
        return False
    return all(
        name == own and number in (indices(slice_text or "", number + 1) or ())
        for (name, slice_text), (own, number) in zip(segments, pairs, strict=False)
    )

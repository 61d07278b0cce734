"""HTML from plain values, everything escaped: tables, definition lists, notes."""

import html
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

__all__ = ["Cell", "Column", "Raw", "element", "facts_list", "table"]


class Raw(str):
    """Text that is HTML already."""

    __slots__ = ()


@dataclass(frozen=True, slots=True)
class Column:
    """Heading of a table's column."""

    title: str
    unit: str = ""
    numeric: bool = True
    hint: str = ""
    """What it is, shown when pointed at."""


@dataclass(frozen=True, slots=True)
class Cell:
    """What a table shows, and by what it is sorted."""

    text: str
    key: float | str | None = None


def element(tag: str, *children: str, **attributes: str) -> Raw:
    """One element; children that aren't `Raw` are escaped, `class_` is `class`."""
    text = "".join(
        f' {name.rstrip("_").replace("_", "-")}="{html.escape(value)}"'
        for name, value in attributes.items()
    )
    inner = "".join(child if isinstance(child, Raw) else html.escape(child) for child in children)
    return Raw(f"<{tag}{text}>{inner}</{tag}>")


def facts_list(facts: Mapping[str, str]) -> Raw:
    """A definition list; empty values are left out."""
    pairs = [
        element("div", element("dt", name), element("dd", text))
        for name, text in facts.items()
        if text
    ]
    return element("dl", *pairs, class_="facts")


def table(columns: Sequence[Column], rows: Iterable[Sequence[Cell]]) -> Raw:
    """A table whose columns sort on a click."""
    head = element("tr", *(_heading(column) for column in columns))
    body = [
        element("tr", *(_cell(column, cell) for column, cell in zip(columns, row, strict=True)))
        for row in rows
    ]
    inner = element("table", element("thead", head), element("tbody", *body), class_="sortable")
    return element("div", inner, class_="scroll")


def _heading(column: Column) -> Raw:
    unit = element("span", column.unit, class_="unit") if column.unit else Raw("")
    attributes = {"class_": "number" if column.numeric else "text"}
    if column.hint:
        attributes["title"] = column.hint
    return element("th", element("button", column.title, Raw(" "), unit, type="button"),
                   scope="col", **attributes)  # fmt: skip


def _cell(column: Column, cell: Cell) -> Raw:
    attributes = {"class_": "number" if column.numeric else "text"}
    if cell.key is not None:
        attributes["data_key"] = str(cell.key)
    return element("td", cell.text, **attributes)

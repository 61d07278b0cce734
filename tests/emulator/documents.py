"""Documents with something changed, to be read or refused."""

from collections.abc import Sequence
from typing import Any

from hypothesis import strategies as st


def any_value(hints: Sequence[str], text_length: int, leaves: int) -> st.SearchStrategy[Any]:
    """Whatever YAML can hold, small; `hints` are texts that mean something there."""
    scalars = st.one_of(
        st.none(),
        st.booleans(),
        st.integers(-(2**70), 2**70),
        st.floats(),
        st.text(max_size=text_length),
        st.sampled_from(hints),
    )
    return st.recursive(
        scalars,
        lambda inner: st.one_of(
            st.lists(inner, max_size=3), st.dictionaries(st.text(max_size=5), inner, max_size=3)
        ),
        max_leaves=leaves,
    )


def places(value: Any, prefix: tuple[Any, ...] = ()) -> list[tuple[Any, ...]]:
    """Every place of a document but its root."""
    entries: list[tuple[Any, Any]] = []
    if isinstance(value, dict):
        entries = list(value.items())
    elif isinstance(value, list):
        entries = list(enumerate(value))
    inner = [place for key, entry in entries for place in places(entry, (*prefix, key))]
    return ([prefix] if prefix else []) + inner


def change(data: st.DataObject, document: Any, values: st.SearchStrategy[Any]) -> None:
    """Put a value at any place of the document, or remove what is there."""
    *way, last = data.draw(st.sampled_from(places(document)))
    for key in way:
        document = document[key]
    if data.draw(st.booleans()):
        document[last] = data.draw(values)
    else:
        del document[last]

"""Whatever topology and binding hold, an import ends with a lab or with problems."""

import contextlib
import copy
from pathlib import Path
from typing import Any

import yaml
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from dataplane.errors import InputError
from emulator.exchange import EXPORT_FORMATS, export_lab, import_lab
from emulator.lab import load

EXPORTS = {name: export_lab(load("explicit-example"), name) for name in EXPORT_FORMATS}
FILES = {
    name: [yaml.safe_load(text) for text in (made.text, made.binding_text)]
    for name, made in EXPORTS.items()
}

scalars = st.one_of(
    st.none(),
    st.booleans(),
    st.integers(-(2**70), 2**70),
    st.floats(),
    st.text(max_size=6),
    st.sampled_from(["left0:eth1", "host[0]", "port[:]", "nic[-9]", "port[0:9:0]", "nic[", "*"]),
)
values = st.recursive(
    scalars,
    lambda inner: st.one_of(
        st.lists(inner, max_size=3), st.dictionaries(st.text(max_size=5), inner, max_size=3)
    ),
    max_leaves=4,
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


@settings(
    max_examples=120,
    deadline=None,
    suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow],
)
@given(data=st.data())
def test_a_changed_file_or_binding_is_imported_or_refused(
    tmp_path: Path, data: st.DataObject
) -> None:
    files = copy.deepcopy(FILES[data.draw(st.sampled_from(EXPORT_FORMATS))])
    changed = data.draw(st.sampled_from(files))
    place = data.draw(st.sampled_from(places(changed)))
    container = changed
    for key in place[:-1]:
        container = container[key]
    if data.draw(st.booleans()):
        container[place[-1]] = data.draw(values)
    else:
        del container[place[-1]]
    paths = [tmp_path / "file.yaml", tmp_path / "binding.yaml"]
    for path, document in zip(paths, files, strict=True):
        path.write_text(yaml.safe_dump(document))
    with contextlib.suppress(InputError):
        import_lab(*paths)

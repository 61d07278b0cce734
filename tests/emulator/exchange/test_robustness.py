"""Whatever topology and binding hold, an import ends with a lab or with problems."""

import contextlib
import copy
from pathlib import Path

import yaml
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from dataplane.errors import InputError
from emulator.exchange import EXPORT_FORMATS, export_lab, import_lab
from emulator.lab import load
from tests.emulator.documents import any_value, change

EXPORTS = {name: export_lab(load("explicit-example"), name) for name in EXPORT_FORMATS}
FILES = {
    name: [yaml.safe_load(text) for text in (made.text, made.binding_text)]
    for name, made in EXPORTS.items()
}

values = any_value(
    ["left0:eth1", "host[0]", "port[:]", "nic[-9]", "port[0:9:0]", "nic[", "*"],
    text_length=6,
    leaves=4,
)


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
    change(data, data.draw(st.sampled_from(files)), values)
    paths = [tmp_path / "file.yaml", tmp_path / "binding.yaml"]
    for path, document in zip(paths, files, strict=True):
        path.write_text(yaml.safe_dump(document))
    with contextlib.suppress(InputError):
        import_lab(*paths)

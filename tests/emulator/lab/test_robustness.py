"""Whatever a lab file holds, loading ends with a lab or with problems, never with another error."""

import contextlib
import copy
from pathlib import Path
from typing import Any

import pytest
import yaml
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from dataplane.errors import InputError
from emulator.doctor import diagnose
from emulator.job_config import job_config
from emulator.lab import list_labs, load
from emulator.lab.model import Lab
from emulator.lab.overrides import all_paths
from tests.emulator.documents import any_value, change

LABS = {name: yaml.safe_load(path.read_text()) for name, path in list_labs().items()}

values = any_value(
    ["leaf0:1", "198.18.0.1", "dcqcn", "clos", "explicit", "host0", "1e9", "~"],
    text_length=8,
    leaves=5,
)


def load_anything(path: Path, overrides: list[str]) -> None:
    with contextlib.suppress(InputError):
        loaded = load(path, overrides)
        job_config(loaded.lab, loaded.fabric, seed=1)
        diagnose(loaded)


anything = settings(
    max_examples=100,
    deadline=None,
    suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow],
)


@anything
@given(data=st.data())
def test_a_changed_lab_file_loads_or_is_refused(tmp_path: Path, data: st.DataObject) -> None:
    document = copy.deepcopy(LABS[data.draw(st.sampled_from(sorted(LABS)))])
    change(data, document, values)
    path = tmp_path / "lab.yaml"
    path.write_text(yaml.safe_dump(document))
    load_anything(path, [])


@anything
@given(path=st.sampled_from(all_paths(Lab)), value=values)
def test_any_override_is_applied_or_refused(path: str, value: Any) -> None:
    if path.startswith("control.broker"):
        return
    load_anything(Path(list_labs()["explicit-example"]), [f"{path}={yaml.safe_dump(value)}"])


@anything
@given(text=st.text(max_size=60))
def test_any_text_is_refused_or_read(tmp_path: Path, text: str) -> None:
    path = tmp_path / "lab.yaml"
    path.write_text(text, encoding="utf-8", errors="surrogatepass")
    with pytest.raises(InputError):
        load(path)

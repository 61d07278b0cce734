"""A run has a directory of its own, and never writes over another."""

import os
from pathlib import Path

import pytest

from dataplane.errors import InputError, RunError
from emulator.run_directory import make_run_directory, writing


def test_the_default_is_named_by_time_lab_and_command_and_is_new_each_time(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    first = make_run_directory(None, "some-lab", "predict")
    second = make_run_directory(None, "some-lab", "predict")
    assert first != second
    assert first.parent == Path("runs")
    assert first.name.endswith("-some-lab-predict")


def test_an_existing_directory_with_something_in_it_is_refused(tmp_path: Path) -> None:
    (tmp_path / "run.json").write_text("{}")
    with pytest.raises(InputError, match="exists and is not an empty directory"):
        make_run_directory(str(tmp_path), "lab", "run")


def test_a_file_in_the_way_is_refused(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(InputError, match="exists and is not an empty directory"):
        make_run_directory(str(tmp_path / "file"), "lab", "run")


def test_a_directory_below_a_file_can_t_be_made(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(InputError, match="can't be written"):
        make_run_directory(str(tmp_path / "file" / "below"), "lab", "run")


@pytest.mark.skipif(os.geteuid() == 0, reason="root may write anywhere")
def test_an_unwritable_directory_is_refused(tmp_path: Path) -> None:
    tmp_path.chmod(0o500)
    with pytest.raises(InputError, match="Permission denied"):
        make_run_directory(str(tmp_path / "run"), "lab", "run")


def test_a_disk_that_fills_up_ends_the_run_with_one_message(tmp_path: Path) -> None:
    with pytest.raises(RunError, match="No space left"), writing(tmp_path):
        raise OSError(28, "No space left on device")

"""docs/proof.md names the tests of T1 to T16, and each of them is there under its number."""

import re
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
ROWS = dict(
    re.findall(r"^\| (T\d+) \|.*\|(.*)\|$", (ROOT / "docs/proof.md").read_text(), re.MULTILINE)
)


def test_every_number_has_a_row() -> None:
    assert list(ROWS) == [f"T{number}" for number in range(1, 17)]


@pytest.mark.parametrize("number", ROWS)
def test_every_file_of_a_row_has_a_test_of_that_number(number: str) -> None:
    files = re.findall(r"`([^`]+)`", ROWS[number])
    assert files
    for file in files:
        text = (ROOT / file).read_text()
        assert re.search(rf"(fn |def test_){number.lower()}_", text), f"{file} has no {number}"

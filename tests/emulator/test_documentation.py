"""docs/labs.md, its drawing and docs/sweeps.md are what the models say."""

from pathlib import Path

from emulator.documentation import lab_drawing, labs_page, sweeps_page

DOCS = Path(__file__).parents[2] / "docs"


def test_the_page_about_labs_is_current() -> None:
    """Otherwise: python -m emulator.documentation."""
    assert (DOCS / "labs.md").read_text() == labs_page()


def test_the_page_about_sweeps_is_current() -> None:
    """Otherwise: python -m emulator.documentation."""
    assert (DOCS / "sweeps.md").read_text() == sweeps_page()


def test_the_drawing_of_a_lab_is_current() -> None:
    """Otherwise: python -m emulator.documentation."""
    assert (DOCS / "images" / "lab.svg").read_text() == lab_drawing()

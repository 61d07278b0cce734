"""docs/labs.md, its drawing and docs/sweeps.md are what the models say."""

from pathlib import Path

from emulator.documentation import lab_drawing, labs_page, sweeps_page
from emulator.documentation_tables import TRAPS
from emulator.lab.congestion import Dcqcn, NotificationPoint

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


def test_every_option_of_dcqcn_is_a_point_on_which_implementations_differ_or_a_number() -> None:
    """A new option belongs into the table of the points."""
    options = {*Dcqcn.model_fields, *NotificationPoint.model_fields}
    told = {key for _, keys in TRAPS for key in keys}
    numbers = {"g", "rate_increase_period_ns", "additive_increase_bps"}
    assert options - told - numbers == {"algorithm", "preset", "enabled"}

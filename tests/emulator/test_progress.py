"""Progress goes to stderr: a bar on a terminal, lines elsewhere, nothing when quiet."""

import io

import pytest
from rich.console import Console

from emulator import progress
from emulator.progress import ProgressDisplay, ProgressPoint

POINT = ProgressPoint("predicting", 250, 1000, 1_500_000_000, events=5_000_000)


def terminal() -> Console:
    return Console(file=io.StringIO(), force_terminal=True, width=100)


def test_a_terminal_shows_share_operations_emulated_time_and_time_left(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    now_s = [100.0]
    monkeypatch.setattr(progress.time, "monotonic", lambda: now_s[0])
    console = terminal()
    with ProgressDisplay("lab", console=console) as display:
        now_s[0] += 1.0
        display.update(ProgressPoint("predicting", 0, 1000, 0, events=1_000_000))
        now_s[0] += 1.0
        display.update(POINT)
        assert display._bar is not None
        display._bar.refresh()
    shown = console.file.getvalue()  # type: ignore[attr-defined]
    for text in ("25%", "250/1 k ops", "1.5 ms", "4 Mevents/s", "0:06 left"):
        assert text in shown


def test_elsewhere_a_line_comes_every_ten_seconds(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    now_s = [0.0]
    monkeypatch.setattr(progress.time, "monotonic", lambda: now_s[0])
    with ProgressDisplay("lab", console=Console(file=io.StringIO())) as display:
        for _ in range(30):
            now_s[0] += 1.0
            display.update(POINT)
    told = capsys.readouterr()
    assert len(told.err.splitlines()) == 3
    assert told.err.startswith("lab predicting 25%")
    assert told.out == ""


def test_quiet_shows_nothing(capsys: pytest.CaptureFixture[str]) -> None:
    console = terminal()
    with ProgressDisplay("lab", quiet=True, console=console) as display:
        display.update(POINT)
    assert console.file.getvalue() == ""  # type: ignore[attr-defined]
    assert capsys.readouterr().err == ""

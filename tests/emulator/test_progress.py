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
    for text in ("25%", "250/1 k ops", "1.5 ms", "4 Mevents/s", "0:03 left"):
        assert text in shown


def shown(points: list[tuple[float, ProgressPoint]], monkeypatch: pytest.MonkeyPatch) -> str:
    """What stands on a terminal after these points at these times, s."""
    now_s = [0.0]
    monkeypatch.setattr(progress.time, "monotonic", lambda: now_s[0])
    console = terminal()
    with ProgressDisplay("lab", console=console) as display:
        for now_s[0], point in points:
            display.update(point)
        assert display._bar is not None
        display._bar.refresh()
    return str(console.file.getvalue())  # type: ignore[attr-defined]


def test_the_share_is_that_of_the_bytes_for_operations_differ_in_size() -> None:
    point = ProgressPoint("predicting", 900, 1000, bytes_done=10, bytes_total=100)
    assert point.share == pytest.approx(0.1, abs=0.01)
    assert ProgressPoint("predicting", 5, 5, bytes_done=7, bytes_total=7).share == 1
    assert ProgressPoint("running", 1, 4).share == 0.25


def test_reading_and_compiling_do_not_count_for_the_time_left(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """A minute of reading, then a tenth in ten seconds: ninety are left."""
    points = [
        (0.0, ProgressPoint("reading")),
        (60.0, ProgressPoint("predicting", 0, 100)),
        (70.0, ProgressPoint("predicting", 10, 100)),
    ]
    assert "1:30 left" in shown(points, monkeypatch)


def test_the_time_left_follows_a_change_of_speed(monkeypatch: pytest.MonkeyPatch) -> None:
    """Half in ten seconds, then a hundredth every ten: 42 hundredths take seven minutes."""
    slow = [(10.0 + 10 * n, ProgressPoint("predicting", 50 + n, 100)) for n in range(9)]
    points = [(0.0, ProgressPoint("predicting", 0, 100)), *slow]
    assert "7:00 left" in shown(points, monkeypatch)


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


@pytest.mark.parametrize("is_terminal", [True, False])
def test_a_notice_is_shown_once_and_as_it_is(is_terminal: bool) -> None:
    """Whole, on a line of its own, however often it is told."""
    notice = "the clock of agent a [x] was set by +3600.000 s; " + "the run goes on, " * 10
    console = Console(file=io.StringIO(), force_terminal=is_terminal, width=40)
    with ProgressDisplay("lab", console=console) as display:
        for _ in range(3):
            display.update(ProgressPoint("running", 1, 4, notices=(notice,)))
    assert console.file.getvalue().count(f"rankwire: {notice}") == 1  # type: ignore[attr-defined]


def test_a_quiet_display_shows_no_notice() -> None:
    console = terminal()
    with ProgressDisplay("lab", quiet=True, console=console) as display:
        display.update(ProgressPoint("running", 1, 4, notices=("a clock was set",)))
    assert console.file.getvalue() == ""  # type: ignore[attr-defined]

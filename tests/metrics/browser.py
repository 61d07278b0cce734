"""A headless Chromium for tests: the page as it is after its scripts have run."""

import re
import shutil
import subprocess
from pathlib import Path

import pytest

__all__ = ["rendered"]

_NAMES = ("chromium", "chromium-browser", "google-chrome", "google-chrome-stable")


def rendered(page: Path, width_px: int = 1440) -> tuple[str, list[str]]:
    """The document after rendering in a window so wide, and errors that the page logged.

    Skips without a browser.
    """
    browser = next(filter(None, map(shutil.which, _NAMES)), None)
    if browser is None:
        pytest.skip("no Chromium is installed")
    result = subprocess.run(
        [
            browser,
            "--headless",
            "--no-sandbox",
            "--disable-gpu",
            f"--window-size={width_px},1000",
            "--enable-logging=stderr",
            # No name resolves: a page that loads anything from elsewhere can't.
            "--host-resolver-rules=MAP * ~NOTFOUND",
            "--virtual-time-budget=30000",
            "--dump-dom",
            page.resolve().as_uri(),
        ],
        capture_output=True,
        text=True,
        timeout=120,
        check=True,
    )
    console = re.findall(r"CONSOLE[^\n]*", result.stderr)
    return result.stdout, [line for line in console if "rror" in line]

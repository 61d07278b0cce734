"""The drawing's style sheet: every colour twice, for light and dark pages."""

from typing import Literal

__all__ = ["Theme", "style_sheet"]

Theme = Literal["auto", "light", "dark"]
"""`auto` follows the reader's system."""

_LIGHT = (
    "--ink:#1c2833;--muted:#5f6f7f;--page:#ffffff;--box:#eef3f8;--edge:#8aa0b5;"
    "--nic:#f7f9fb;--link:#7c93a9;--hot:#c2302f"
)
_DARK = (
    "--ink:#e6edf3;--muted:#9aa9b8;--page:#12181f;--box:#223040;--edge:#5d7a96;"
    "--nic:#1a232d;--link:#7f97ae;--hot:#ff6b5e"
)
_RULES = """\
.rw{font-family:Inter,"Segoe UI",Roboto,"Helvetica Neue",Arial,sans-serif;font-size:12px}
.rw .page{fill:var(--page)}
.rw text{fill:var(--ink);text-anchor:middle}
.rw .start{text-anchor:start}
.rw .title{font-size:18px;font-weight:650}
.rw .muted{fill:var(--muted)}
.rw .small{font-size:11px}
.rw .switch{fill:var(--box);stroke:var(--edge)}
.rw .nic{fill:var(--nic);stroke:var(--edge)}
.rw .link{stroke:var(--link);fill:none}
.rw .cell{fill:var(--link)}
.rw .hot{stroke:var(--hot);fill:none}
.rw .hot-cell{fill:var(--hot)}
.rw .halo{stroke:var(--page);stroke-width:6px;paint-order:stroke;stroke-linejoin:round}
"""


def style_sheet(theme: Theme) -> str:
    """The style sheet of a theme."""
    first = _DARK if theme == "dark" else _LIGHT
    sheet = f".rw{{{first}}}\n"
    if theme == "auto":
        sheet += f"@media (prefers-color-scheme:dark){{.rw{{{_DARK}}}}}\n"
    return sheet + _RULES

"""SVG from plain values, everything escaped; numbers with two decimals at most."""

import html

__all__ = ["element", "number", "text_at"]


def text_at(x: float, y: float, words: str, class_: str = "") -> str:
    """Words at a place; `class_` says how."""
    named = {"class_": class_} if class_ else {}
    return element("text", html.escape(words), **named, x=x, y=y)


def element(tag: str, inner: str = "", **attributes: str | float) -> str:
    """One element; `inner` is SVG already, `class_` is `class`, `_` in other names is `-`."""
    attached = "".join(
        f' {name.rstrip("_").replace("_", "-")}="{_value(value)}"'
        for name, value in attributes.items()
    )
    return f"<{tag}{attached}>{inner}</{tag}>" if inner else f"<{tag}{attached}/>"


def _value(value: str | float) -> str:
    return html.escape(value) if isinstance(value, str) else number(value)


def number(value: float) -> str:
    """Two decimals at most, no exponent."""
    return f"{value:.2f}".rstrip("0").rstrip(".")

"""Pieces of the generated Markdown pages."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from typing import Final

__all__ = ["code", "page", "plain", "rows", "table"]

_SPECIAL: Final = re.compile(r"([\\*_<>\[\]|{}#])")
_CODE: Final = re.compile(r"(`[^`]*`)")
_HEAD: Final = "<!-- Made from the sources by codegen/site. -->\n\n"


def page(title: str, introduction: str, *parts: str) -> str:
    """Return the text of a page."""
    return f"{_HEAD}# {title}\n\n{introduction}\n\n" + "\n".join(parts)


def plain(text: str) -> str:
    """Return prose as Markdown that shows each character; text in backticks stays code."""
    pieces = _CODE.split(" ".join(text.split()))
    return "".join(
        code(each[1:-1]) if each.startswith("`") and len(each) > 2 else _SPECIAL.sub(r"\\\1", each)
        for each in pieces
    )


def code(text: str) -> str:
    """Return text as code on one line, also inside a table."""
    shown = " ".join(text.split()).replace("|", "\\|")
    return f"`` {shown} ``" if "`" in shown else f"`{shown}`"


def table(head: Sequence[str], body: Iterable[Sequence[str]]) -> str:
    """Return a table of Markdown cells; nothing without rows."""
    lines = [f"| {' | '.join(each)} |\n" for each in body]
    return f"| {' | '.join(head)} |\n|{' --- |' * len(head)}\n{''.join(lines)}\n" if lines else ""


def rows(pairs: Iterable[tuple[str, str]]) -> str:
    """Return a list of named values, without those that are empty."""
    return "".join(f"- **{name}:** {value}\n" for name, value in pairs if value) + "\n"

"""Texts of errors and people, made fit for the wire: nothing fails for how its reason reads."""

from __future__ import annotations

import re
from typing import Final

__all__ = ["one_line", "valid"]

# C0, DEL and C1: NUL, CR and LF among them, which would end a header.
_CONTROL: Final = re.compile(r"[\0-\x1f\x7f-\x9f]+")


def valid(text: str) -> str:
    """Return text that UTF-8 can hold; lone surrogates, as of file names, become `?`."""
    return text.encode("utf-8", "replace").decode()


def one_line(text: str) -> str:
    """Return valid text without control characters; blanks are in their place."""
    return _CONTROL.sub(" ", valid(text))

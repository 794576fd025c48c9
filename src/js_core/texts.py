"""Texts of errors and of users, made fit for the wire: no text in a header makes a call fail."""

from __future__ import annotations

import re
from typing import Final

__all__ = ["one_line", "valid"]

# C0, DEL and C1: NUL, CR and LF among them, which would end a header.
_CONTROL: Final = re.compile(r"[\0-\x1f\x7f-\x9f]+")


def valid(text: str) -> str:
    """Return text that UTF-8 can hold; lone surrogates, as in file names, become `?`."""
    return text.encode("utf-8", "replace").decode()


def one_line(text: str) -> str:
    """Return valid text with a blank in the place of control characters."""
    return _CONTROL.sub(" ", valid(text))

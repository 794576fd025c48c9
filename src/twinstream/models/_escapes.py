"""Escape unprintable characters in text from servers, publishers and files before it is shown.

Exceptions, log records and the command line use it. Without escapes, a control sequence could move
the cursor, rewrite earlier lines or fill the clipboard (OSC 52), a line break could forge a line of
a log, and bidirectional control characters could reverse the visible text.
"""

from __future__ import annotations

import json
import re
from typing import Final

__all__ = ["harmless", "harmless_line"]

# ASCII text that needs no escapes. Most text matches these patterns, which are fast to check.
_ASCII_TEXT: Final = re.compile(r"[\t\n -~]*")
_ASCII_LINE: Final = re.compile(r"[ -~]*")


def harmless(text: str) -> str:
    """Return text with escapes for its unprintable characters, except tabs and newlines."""
    if _ASCII_TEXT.fullmatch(text):
        return text
    return "".join(c if c.isprintable() or c in "\t\n" else _escape(c) for c in text)


def harmless_line(text: str) -> str:
    """Return text with escapes for all its unprintable characters, so that it is one line."""
    if _ASCII_LINE.fullmatch(text):
        return text
    return "".join(c if c.isprintable() else _escape(c) for c in text)


def _escape(character: str) -> str:
    """Return the JSON escape for a character. The json module escapes all of them except DEL."""
    number = ord(character)
    return json.dumps(character)[1:-1] if number != 0x7F else "\\u007f"

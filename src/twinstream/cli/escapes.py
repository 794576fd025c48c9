"""Escape control characters in text from servers, publishers and files before it is printed.

`screen` escapes the text of consoles, and `failures` escapes error messages. Without escapes, a
control sequence could move the cursor, rewrite earlier lines or fill the clipboard (OSC 52), and
bidirectional control characters could reverse the visible text.
"""

from __future__ import annotations

import json
import re
from typing import Final

# ASCII text that needs no escapes. Most text matches this pattern, which is fast to check.
_ASCII_TEXT: Final = re.compile(r"[\t\n -~]*")


def harmless(text: str) -> str:
    """Return text with escapes for its unprintable characters, except tabs and newlines."""
    if _ASCII_TEXT.fullmatch(text):
        return text
    return "".join(c if c.isprintable() or c in "\t\n" else _escape(c) for c in text)


def json_line(value: object) -> str:
    """Return a value as JSON on one line, with escapes for unprintable characters.

    Unprintable characters can occur only within the strings of the JSON text, where JSON parsers
    decode the escapes.
    """
    text = json.dumps(value, ensure_ascii=False, separators=(",", ":"))
    return harmless(text)


def _escape(character: str) -> str:
    """Return the JSON escape for a character. The json module escapes all of them except DEL."""
    number = ord(character)
    return json.dumps(character)[1:-1] if number != 0x7F else "\\u007f"

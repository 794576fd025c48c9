"""Escapes for text from servers, publishers and files, before it reaches a terminal.

Everything that a command prints is escaped: by `screen` for consoles, by `failures` for error
lines. A raw control sequence could move the cursor, rewrite earlier lines or fill the clipboard
(OSC 52), and bidirectional controls could reverse the visible text.
"""

from __future__ import annotations

import json
import re
from typing import Final

# Characters that need no further check. Most text consists of these.
_ASCII_TEXT: Final = re.compile(r"[\t\n -~]*")


def harmless(text: str) -> str:
    """Return text with an escape for each unprintable character, except tabs and line ends."""
    if _ASCII_TEXT.fullmatch(text):
        return text
    return "".join(c if c.isprintable() or c in "\t\n" else _escape(c) for c in text)


def json_line(value: object) -> str:
    """Return a value as JSON on one line, with escapes for characters that a terminal could act on.

    Outside strings, JSON on one line has only printable characters. So each escape is within a
    string, where a JSON parser decodes it.
    """
    text = json.dumps(value, ensure_ascii=False, separators=(",", ":"))
    return harmless(text)


def _escape(character: str) -> str:
    """Return the JSON escape for a character; for DEL, the json module would not write one."""
    number = ord(character)
    return json.dumps(character)[1:-1] if number != 0x7F else "\\u007f"

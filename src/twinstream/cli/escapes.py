"""Escapes for text that servers, publishers and files supply, before it reaches a terminal.

Everything that a command prints passes through here: `screen` calls it for what goes to consoles,
`failures` for error lines. A raw control sequence could move the cursor, rewrite earlier lines or
fill the clipboard (OSC 52), and bidirectional controls could reverse what a reader sees.
"""

from __future__ import annotations

import json
import re
from typing import Final

# The characters that `str.isprintable` may reject: a cheap test that most text passes.
_ASCII_TEXT: Final = re.compile(r"[\t\n -~]*")


def harmless(text: str) -> str:
    """Return text with an escape for each character that is not printable; tabs and lines stay."""
    if _ASCII_TEXT.fullmatch(text):
        return text
    return "".join(c if c.isprintable() or c in "\t\n" else _escape(c) for c in text)


def json_line(value: object) -> str:
    """Return a value as JSON on one line, with escapes for what a terminal could act on.

    Outside strings such a line has printable characters only, so each escape is within a string,
    where a reader of JSON turns it back into the character.
    """
    text = json.dumps(value, ensure_ascii=False, separators=(",", ":"))
    return harmless(text)


def _escape(character: str) -> str:
    """Return the escape of JSON for a character, which for DEL json itself does not write."""
    number = ord(character)
    return json.dumps(character)[1:-1] if number != 0x7F else "\\u007f"

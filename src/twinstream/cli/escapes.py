"""Escape control characters in text from servers, publishers and files before it is printed.

`screen` escapes the text of consoles, and `failures` escapes error messages.
"""

from __future__ import annotations

import json

from twinstream.models.picklable_error import harmless

__all__ = ["harmless", "json_line"]


def json_line(value: object) -> str:
    """Return a value as JSON on one line, with escapes for unprintable characters.

    Unprintable characters can occur only within the strings of the JSON text, where JSON parsers
    decode the escapes.
    """
    text = json.dumps(value, ensure_ascii=False, separators=(",", ":"))
    return harmless(text)

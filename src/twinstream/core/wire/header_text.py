"""Conversion of arbitrary text, such as error texts, to text that is valid in a header."""

from __future__ import annotations

import re
from typing import Final

__all__ = ["go_unquoted", "one_line", "valid"]

# C0, DEL and C1. NUL, CR and LF among them would end a header.
_CONTROL: Final = r"[\0-\x1f\x7f-\x9f]+"

# Go's `%q` writes a byte that is not UTF-8 as \xNN and other characters as code points.
_ESCAPE: Final = r"\\(?:x([0-9a-f]{2})|u([0-9a-f]{4})|U([0-9a-f]{8})|(.))"
_LETTERS: Final = {"a": "\a", "b": "\b", "f": "\f", "n": "\n", "r": "\r", "t": "\t", "v": "\v"}


def go_unquoted(text: str) -> bytes:
    """Decode the contents of a string literal that Go's `%q` wrote (without its quotes)."""
    return re.sub(_ESCAPE, _unescaped, text).encode("utf-8", "surrogateescape")


def _unescaped(found: re.Match[str]) -> str:
    byte, short, long, letter = found.groups()
    if letter:
        return _LETTERS.get(letter, letter)
    if byte:
        return bytes.fromhex(byte).decode("ascii", "surrogateescape")
    code = int(short or long, 16)
    # Servers write neither surrogates nor numbers beyond Unicode.
    is_letter = code < 0xD800 or 0xE000 <= code < 0x110000
    return chr(code) if is_letter else "\ufffd"


def valid(text: str) -> str:
    """Return text that can be encoded as UTF-8: lone surrogates, as in file names, become `?`."""
    return text.encode("utf-8", "replace").decode()


def one_line(text: str) -> str:
    """Return valid text in which each run of control characters is replaced by a blank."""
    return re.sub(_CONTROL, " ", valid(text))

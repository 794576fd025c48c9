"""Texts of errors and of users, made fit for the wire: no text in a header makes a call fail."""

from __future__ import annotations

import re
from typing import Final

__all__ = ["go_unquoted", "one_line", "valid"]

# C0, DEL and C1: NUL, CR and LF among them, which would end a header.
_CONTROL: Final = re.compile(r"[\0-\x1f\x7f-\x9f]+")

# Go writes a byte that is not UTF-8 as \xNN, other letters as code points.
_ESCAPE: Final = re.compile(r"\\(?:x([0-9a-f]{2})|u([0-9a-f]{4})|U([0-9a-f]{8})|(.))")
_LETTERS: Final = {"a": "\a", "b": "\b", "f": "\f", "n": "\n", "r": "\r", "t": "\t", "v": "\v"}


def go_unquoted(text: str) -> bytes:
    """Return what stands between the quotes of a text that Go's `%q` wrote, as bytes."""
    return _ESCAPE.sub(_unescaped, text).encode("utf-8", "surrogateescape")


def _unescaped(found: re.Match[str]) -> str:
    byte, short, long, letter = found.groups()
    if letter:
        return _LETTERS.get(letter, letter)
    if byte:
        return bytes.fromhex(byte).decode("ascii", "surrogateescape")
    code = int(short or long, 16)
    # No server writes surrogates or numbers beyond Unicode.
    is_letter = code < 0xD800 or 0xE000 <= code < 0x110000
    return chr(code) if is_letter else "\ufffd"


def valid(text: str) -> str:
    """Return text that UTF-8 can hold; lone surrogates, as in file names, become `?`."""
    return text.encode("utf-8", "replace").decode()


def one_line(text: str) -> str:
    """Return valid text with a blank in the place of control characters."""
    return _CONTROL.sub(" ", valid(text))

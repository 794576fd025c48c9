"""Convert arbitrary text, such as error texts, to text that is valid in a header."""

from __future__ import annotations

import re
from typing import Final

__all__ = ["go_unquoted", "one_line", "valid", "visible"]

# The control characters C0, DEL and C1. They include NUL, CR and LF, which would end a header.
_CONTROL: Final = r"[\0-\x1f\x7f-\x9f]+"

# Go's `%q` escapes bytes that are not UTF-8 (\xNN), unprintable characters (\uNNNN, \UNNNNNNNN) and
# some characters by a letter (\n) or themselves (\").
_ESCAPE: Final = r"\\(?:x([0-9a-f]{2})|u([0-9a-f]{4})|U([0-9a-f]{8})|(.))"
_LETTERS: Final = {"a": "\a", "b": "\b", "f": "\f", "n": "\n", "r": "\r", "t": "\t", "v": "\v"}


def go_unquoted(text: str) -> bytes:
    """Undo the escapes of Go's `%q`, and return the original bytes. `text` excludes the quotes."""
    return re.sub(_ESCAPE, _unescaped, text).encode("utf-8", "surrogateescape")


def _unescaped(found: re.Match[str]) -> str:
    """Return the character that an escape in a text of the server stands for."""
    byte, short, long, letter = found.groups()
    if letter:
        return _LETTERS.get(letter, letter)
    if byte:
        return bytes.fromhex(byte).decode("ascii", "surrogateescape")
    code = int(short or long, 16)
    # A server writes neither surrogates nor numbers above U+10FFFF.
    is_letter = code < 0xD800 or 0xE000 <= code < 0x110000
    return chr(code) if is_letter else "\ufffd"


def valid(text: str) -> str:
    """Return the text with `?` for lone surrogates, which UTF-8 cannot encode.

    For example, Python decodes a file name that is not UTF-8 to text with lone surrogates.
    """
    return text.encode("utf-8", "replace").decode()


def one_line(text: str) -> str:
    """Return the result of `valid` with a blank in place of each run of control characters."""
    return re.sub(_CONTROL, " ", valid(text))


def visible(text: str) -> str:
    """Return the text for a line of the log, quoted and escaped if it has unprintable characters.

    Names and subjects of other clients may have control characters and bidirectional controls.
    """
    return text if text.isprintable() else repr(text)

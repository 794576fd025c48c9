"""Attribute values of CloudEvents as text of headers: percent-encoded UTF-8.

Source: the NATS binding of CloudEvents 1.0.
"""

from __future__ import annotations

import re
from datetime import UTC, datetime
from typing import Final
from urllib.parse import unquote_to_bytes

from twinstream.errors.payload import PayloadError

__all__ = ["from_header", "from_time", "to_header", "to_time"]

_ENCODED: Final = re.compile(r'[^\x21-\x7e]|["%]')
_BAD_ESCAPE: Final = re.compile(r"%(?![0-9A-Fa-f]{2})")
_QUOTED: Final = re.compile(r"\\(.)")


def to_header(text: str) -> str:
    """Return the value of a header for an attribute."""
    return _ENCODED.sub(lambda found: "".join(f"%{byte:02X}" for byte in found[0].encode()), text)


def from_header(name: str, value: str) -> str:
    """Return the attribute of a header's value. Raises `PayloadError`; `name` is the header's."""
    if len(value) > 1 and value.startswith('"') and value.endswith('"'):
        value = _QUOTED.sub(r"\1", value[1:-1])
    if _BAD_ESCAPE.search(value):
        raise PayloadError(name, f"{value!r:.80} has an incomplete escape")
    try:
        return unquote_to_bytes(value.encode("utf-8", "surrogateescape")).decode()
    except UnicodeDecodeError as error:
        raise PayloadError(name, f"not UTF-8: {error}") from error


def to_time(time: datetime) -> str:
    """Return a time as RFC 3339 writes it."""
    return time.astimezone(UTC).isoformat().replace("+00:00", "Z")


def from_time(name: str, text: str) -> datetime:
    """Return the time of an attribute. Raises `PayloadError` unless it is RFC 3339."""
    try:
        found = datetime.fromisoformat(text)
    except ValueError as error:
        raise PayloadError(name, f"{text!r:.80} is no time of RFC 3339") from error
    if found.tzinfo is None:
        raise PayloadError(name, f"{text!r:.80} has no zone")
    return found

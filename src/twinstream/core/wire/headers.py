"""Message headers on the wire: encoding, and the status in their first line. Source: ADR-4."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping
from functools import lru_cache
from typing import Final

from twinstream.errors import BadArgument
from twinstream.records.headers import VERSION, Headers, HeaderValues

__all__ = ["check_mapping", "encode_headers", "header_pairs", "parse_status"]


_STATUS_DIGITS: Final = 3
_ONE_VALUE: Final = (str, bytes)
_BAD_NAME: Final = re.compile(r"[^!-9;-~]")
_BAD_VALUE: Final = re.compile(r"[\r\n\0]")


def parse_status(block: bytes) -> tuple[int, str]:
    """Return code and text of the status in the first line, or 0 and "" without a status."""
    line = block[: block.find(b"\r\n")]
    words = line[len(VERSION) :].strip()
    if not words:
        return 0, ""
    code, _, text = words.partition(b" ")
    # A code has three digits (ADR-4). A publisher may send thousands of digits, for which `int`
    # would raise an error.
    if len(code) > _STATUS_DIGITS or not code.isdigit():
        return 0, ""
    return int(code), text.strip().decode("utf-8", "replace")


def encode_headers(headers: HeaderValues | None) -> bytes:
    """Return the header block of a message, empty without headers.

    Raises `BadArgument` for a name or value that would change the meaning of the block.
    """
    if not headers:
        return b""
    text = f"{VERSION}\r\n"
    for name, value in header_pairs(headers):
        _check_name(name)
        # Printable text contains no CR, LF or NUL. This check is three times faster than the
        # regular expression in `_check_value`.
        if not isinstance(value, str) or not value.isprintable():
            _check_value(name, value)
        text += f"{name}: {value}\r\n"
    try:
        return (text + "\r\n").encode("utf-8", "surrogateescape")
    except UnicodeEncodeError as error:
        begin, end = text.rfind("\r\n", 0, error.start) + 2, text.find("\r\n", error.start)
        name, _, value = text[begin:end].partition(": ")
        raise BadArgument(f"header {name}: {value!r} is not valid Unicode") from error


# Cached, because applications use the same few names again and again.
@lru_cache(maxsize=1000)
def _check_name(name: object) -> None:
    if not isinstance(name, str):
        raise BadArgument(f"a header name must be text, got {name!r}")
    if not name or _BAD_NAME.search(name):
        raise BadArgument(f"header name {name!r} may hold visible ASCII without ':' only")


def _check_value(name: str, value: object) -> None:
    if not isinstance(value, str):
        raise BadArgument(f"header {name}: the value must be text, got {value!r}")
    if _BAD_VALUE.search(value):
        raise BadArgument(f"header {name}: a value may not hold CR, LF or NUL")


def check_mapping(headers: object) -> None:
    """Raise `BadArgument` unless `headers` is a mapping; a list of pairs, for example, is not."""
    if not isinstance(headers, Mapping):
        raise BadArgument(f"headers must be Headers or a mapping of names, got {headers!r:.60}")


def header_pairs(headers: HeaderValues) -> Iterator[tuple[str, str]]:
    """Yield name and value of each header line, without validating them.

    Raises `BadArgument` if `headers` is not a mapping.
    """
    if isinstance(headers, Headers):
        yield from headers.pairs
        return
    check_mapping(headers)
    for name, value in headers.items():
        # Bytes are an invalid value. Iterating over them would yield numbers, and the error would
        # name a number instead of the bytes.
        if isinstance(value, _ONE_VALUE):
            yield name, value
        elif isinstance(value, Iterable):
            for each in value:
                yield name, each
        else:
            yield name, value

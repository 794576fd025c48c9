"""Message headers: a case-preserving, ordered multi-map, and its encoding on the wire.

Source: ADR-4. JetStream compares names case-sensitively, so `Headers` does, too. Values are text.
Bytes that are not UTF-8 become surrogate escapes.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping
from functools import lru_cache
from typing import Final, TypeVar

from twinstream.errors import BadArgument

__all__ = [
    "HeaderValues",
    "Headers",
    "appended",
    "check_mapping",
    "encode_headers",
    "header_pairs",
    "parse_status",
]

HeaderValues = Mapping[str, str | Iterable[str]]
"""Headers accepted from a publisher: one value or several for each name."""

T = TypeVar("T")

_VERSION: Final = "NATS/1.0"
_VERSION_BYTES: Final = _VERSION.encode()
_STATUS_DIGITS: Final = 3
_ONE_VALUE: Final = (str, bytes)
_BAD_NAME: Final = re.compile(r"[^!-9;-~]")
_BAD_VALUE: Final = re.compile(r"[\r\n\0]")


class Headers(Mapping[str, str]):
    """The headers of a message. `headers[name]` is the first value, `get_all` returns all values.

    Length and iteration are over distinct names. `pairs` holds every header line in order.

    A server stores any bytes that a publisher declares as a header block. If the block does not
    begin with `NATS/1.0`, `malformed` holds its bytes; otherwise `malformed` is empty. In a reply
    to a direct get, `malformed` lacks the last two bytes, which the server removes.
    """

    __slots__ = ("_first", "malformed", "pairs")

    def __init__(self, pairs: Iterable[tuple[str, str]] = (), *, malformed: bytes = b"") -> None:
        self.pairs: Final = tuple(pairs)
        self.malformed: Final = malformed
        self._first: dict[str, str] = dict(self.pairs)
        if len(self._first) < len(self.pairs):
            # `dict` keeps the last value of a name, but the first one counts.
            self._first |= dict(reversed(self.pairs))

    def __or__(self, other: Mapping[str, T]) -> dict[str, str | T]:
        """Return a dictionary of the first values, replaced and completed by those of `other`."""
        return {**self, **other}

    def __ror__(self, other: Mapping[str, T]) -> dict[str, str | T]:
        """Return a dictionary of `other`, replaced and completed by the first values."""
        return {**other, **self}

    @classmethod
    def parse(cls, block: bytes) -> Headers:
        """Parse a header block, from `NATS/1.0` to the empty line.

        In a malformed block, each line after the first is parsed as a header.
        """
        lines = block.decode("utf-8", "surrogateescape").split("\r\n")[1:]
        malformed = b"" if block.startswith(_VERSION_BYTES) else block
        return cls([_pair(line) for line in lines if line], malformed=malformed)

    def __getitem__(self, name: str) -> str:
        return self._first[name]

    def __iter__(self) -> Iterator[str]:
        return iter(self._first)

    def __len__(self) -> int:
        return len(self._first)

    def get_all(self, name: str) -> list[str]:
        """Return all values of `name` in order, an empty list if there are none."""
        return [value for each, value in self.pairs if each == name]

    def __eq__(self, other: object) -> bool:
        if isinstance(other, Headers):
            return self.pairs == other.pairs and self.malformed == other.malformed
        return super().__eq__(other)

    __hash__ = None  # type: ignore[assignment]

    def __reduce__(self) -> tuple[object, ...]:
        """Return a call that creates a copy, because old pickle protocols do not support slots."""
        return _headers, (self.pairs, self.malformed)

    def __repr__(self) -> str:
        malformed = f", malformed={self.malformed!r}" if self.malformed else ""
        return f"Headers({list(self.pairs)!r}{malformed})"


def appended(headers: Headers, name: str) -> str | None:
    """Return the header `name` that the server appended to a stored message, None without it.

    A publisher may have stored headers of the same name. The server's is the last one. If the
    stored block did not end with an empty line, the server's line continues the publisher's last
    line.
    """
    start = f"{name}: "
    for each, value in reversed(headers.pairs):
        _, found, text = f"{each}: {value}".rpartition(start)
        if found:
            return text
    return None


def _headers(pairs: Iterable[tuple[str, str]], malformed: bytes) -> Headers:
    return Headers(pairs, malformed=malformed)


def _pair(line: str) -> tuple[str, str]:
    name, _, value = line.partition(":")
    return name.strip(" "), value.strip(" \t")


def parse_status(block: bytes) -> tuple[int, str]:
    """Return code and text of the status in the first line, or 0 and "" without a status."""
    line = block[: block.find(b"\r\n")]
    words = line[len(_VERSION) :].strip()
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
    text = f"{_VERSION}\r\n"
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

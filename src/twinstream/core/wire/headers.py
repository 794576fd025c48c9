"""Message headers: a multi-map that keeps case and order, and the block's bytes on the wire.

Source: ADR-4. JetStream compares names case-sensitively, so this does too.
Values are text; bytes that are not UTF-8 survive as surrogate escapes.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping
from functools import lru_cache
from typing import Final

from twinstream.errors import BadArgument

__all__ = [
    "HeaderValues",
    "Headers",
    "check_mapping",
    "encode_headers",
    "header_pairs",
    "parse_status",
]

HeaderValues = Mapping[str, str | Iterable[str]]
"""What a publisher may pass: one value or several under each name."""

_VERSION: Final = "NATS/1.0"
_VERSION_BYTES: Final = _VERSION.encode()
_STATUS_DIGITS: Final = 3
_ONE_VALUE: Final = (str, bytes)
_BAD_NAME: Final = re.compile(r"[^!-9;-~]")
_BAD_VALUE: Final = re.compile(r"[\r\n\0]")


class Headers(Mapping[str, str]):
    """Headers of a received message; `headers[name]` is the first value, `get_all` gives each.

    The mapping's length and iteration count names; `pairs` keeps every line in order.

    A server stores any bytes that a publisher calls a header block. `malformed` holds those of a
    block that does not begin with `NATS/1.0`; it is empty for all others. From a direct get it
    lacks the last two bytes, which the server cuts off there.
    """

    __slots__ = ("_first", "malformed", "pairs")

    def __init__(self, pairs: Iterable[tuple[str, str]] = (), *, malformed: bytes = b"") -> None:
        self.pairs: Final = tuple(pairs)
        self.malformed: Final = malformed
        self._first: dict[str, str] = dict(self.pairs)
        if len(self._first) < len(self.pairs):
            # The last of several under a name is the one that `dict` took.
            self._first |= dict(reversed(self.pairs))

    @classmethod
    def parse(cls, block: bytes) -> Headers:
        """Read a header block as it came, from `NATS/1.0` to the empty line.

        Of a malformed block this reads what looks like headers.
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
        """Return every value under a name, in order; empty when there is none."""
        return [value for each, value in self.pairs if each == name]

    def __eq__(self, other: object) -> bool:
        if isinstance(other, Headers):
            return self.pairs == other.pairs and self.malformed == other.malformed
        return super().__eq__(other)

    __hash__ = None  # type: ignore[assignment]

    def __repr__(self) -> str:
        malformed = f", malformed={self.malformed!r}" if self.malformed else ""
        return f"Headers({list(self.pairs)!r}{malformed})"


def _pair(line: str) -> tuple[str, str]:
    name, _, value = line.partition(":")
    return name.strip(" "), value.strip(" \t")


def parse_status(block: bytes) -> tuple[int, str]:
    """Return the inline status of a header block as (code, text); code 0 when there is none."""
    line = block[: block.find(b"\r\n")]
    words = line[len(_VERSION) :].strip()
    if not words:
        return 0, ""
    code, _, text = words.partition(b" ")
    # ADR-4 has three digits. Any publisher may write thousands, which `int` refuses.
    if len(code) > _STATUS_DIGITS or not code.isdigit():
        return 0, ""
    return int(code), text.strip().decode("utf-8", "replace")


def encode_headers(headers: HeaderValues | None) -> bytes:
    """Return the header block for a message, empty when there are no headers.

    Raises `BadArgument` for a name or value that would change the meaning of the block.
    """
    if not headers:
        return b""
    text = f"{_VERSION}\r\n"
    for name, value in header_pairs(headers):
        _check_name(name)
        # What can be printed ends no line: one look where others are three times slower.
        if not isinstance(value, str) or not value.isprintable():
            _check_value(name, value)
        text += f"{name}: {value}\r\n"
    try:
        return (text + "\r\n").encode("utf-8", "surrogateescape")
    except UnicodeEncodeError as error:
        begin, end = text.rfind("\r\n", 0, error.start) + 2, text.find("\r\n", error.start)
        name, _, value = text[begin:end].partition(": ")
        raise BadArgument(f"header {name}: {value!r} is not valid Unicode") from error


# Programs use the same few names again and again.
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
    """Raise `BadArgument` for anything but a mapping, such as a list of pairs."""
    if not isinstance(headers, Mapping):
        raise BadArgument(f"headers must be Headers or a mapping of names, got {headers!r:.60}")


def header_pairs(headers: HeaderValues) -> Iterator[tuple[str, str]]:
    """Iterate over the lines of headers; `encode_headers` judges names and values."""
    if isinstance(headers, Headers):
        yield from headers.pairs
        return
    check_mapping(headers)
    for name, value in headers.items():
        # Bytes are no text, but one value: their numbers would be told otherwise.
        if isinstance(value, _ONE_VALUE):
            yield name, value
        elif isinstance(value, Iterable):
            for each in value:
                yield name, each
        else:
            yield name, value

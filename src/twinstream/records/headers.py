"""The headers of a message: a case-preserving, ordered multi-map.

Source: ADR-4. JetStream compares names case-sensitively, so `Headers` does, too. Values are text.
Bytes that are not UTF-8 become surrogate escapes.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import Final, TypeVar

__all__ = ["NO_HEADERS", "VERSION", "HeaderValues", "Headers", "appended"]

HeaderValues = Mapping[str, str | Iterable[str]]
"""Headers accepted from a publisher: one value or several for each name."""

_T = TypeVar("_T")

VERSION: Final = "NATS/1.0"

_VERSION_BYTES: Final = VERSION.encode()


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

    def __or__(self, other: Mapping[str, _T]) -> dict[str, str | _T]:
        """Return a dictionary of the first values, replaced and completed by those of `other`."""
        return {**self, **other}

    def __ror__(self, other: Mapping[str, _T]) -> dict[str, str | _T]:
        """Return a dictionary of `other`, replaced and completed by the first values."""
        return {**other, **self}

    def to_publish(self) -> Headers:
        """Return the headers of a received message that may be published again.

        The result lacks headers that only servers write, and that servers refuse from clients or
        act upon (`Nats-Stream-Source`, `Nats-Scheduler`, `Nats-Schedule-Next`,
        `Nats-Counter-Sources`, `Nats-Pin-Id`, `Nats-Msg-Size`). It also lacks headers that apply to
        the first publication (`Nats-Msg-Id`, `Nats-Incr`, `Nats-Required-Api-Level`,
        `Nats-Expected-…`, `Nats-Batch-…`, `Nats-Trace-…`).

        All other headers are kept, with all values and in order. `Nats-TTL`, `Nats-Rollup` and
        `Nats-Schedule…` take effect again and need a stream that allows them.
        """
        from twinstream.records.copied_headers import is_copied

        return Headers(pair for pair in self.pairs if is_copied(pair[0]))

    @classmethod
    def parse(cls, block: bytes) -> Headers:
        """Parse a header block, from `NATS/1.0` to the empty line.

        In a malformed block, each line after the first is parsed as a header.

        Args:
            block: The bytes of the block.
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


NO_HEADERS: Final = Headers()
"""The headers of a message without any, shared by all such messages."""


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

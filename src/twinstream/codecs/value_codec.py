"""`ValueCodec`: the protocol of codecs for the values of a bucket, and chains of them."""

from __future__ import annotations

from typing import Final, Generic, Protocol, TypeVar

__all__ = ["ValueCodec", "ValueCodecs"]

V = TypeVar("V")


class ValueCodec(Protocol[V]):
    """A conversion of the application's values to stored bytes, and back.

    A bucket needs no more than this. A codec for messages also has a `content_type`; see `Codec`.
    """

    def encode(self, value: V) -> bytes:
        """Return the stored bytes for a value.

        Args:
            value: The value to encode.
        """
        ...

    def decode(self, data: bytes) -> V:
        """Return the value for stored bytes. May raise any error if it cannot decode them.

        Args:
            data: The bytes of a payload.
        """
        ...


class ValueCodecs(Generic[V]):
    """A codec that applies several codecs of values. The first encodes first and decodes last.

    The first codec encodes the application's value. Each further codec encodes bytes.

    Args:
        first: The codec of the program's values.
        others: Codecs of bytes, in the order in which they encode.
    """

    def __init__(self, first: ValueCodec[V], *others: ValueCodec[bytes]) -> None:
        self._first: Final = first
        self._others: Final = others

    def encode(self, value: V) -> bytes:
        """Return the stored bytes.

        Args:
            value: The value to encode.
        """
        data = self._first.encode(value)
        for codec in self._others:
            data = codec.encode(data)
        return data

    def decode(self, data: bytes) -> V:
        """Return the application's value.

        Args:
            data: The bytes of a payload.
        """
        for codec in reversed(self._others):
            data = codec.decode(data)
        return self._first.decode(data)

"""`KeyCodec`: the protocol of codecs for the keys of a bucket, and chains of them.

Source: ADR-54. A codec of keys may also convert filters. Without `encode_filter` it only supports
filters without wildcards.
"""

from __future__ import annotations

from typing import Final, Protocol, runtime_checkable

from twinstream.errors import BadArgument

__all__ = ["WILDCARDS", "FilterCodec", "KeyCodec", "KeyCodecs", "encode_filter"]

WILDCARDS: Final = frozenset({"*", ">"})
"""The tokens of a filter that are no text."""


class KeyCodec(Protocol):
    """A conversion of the application's keys to stored keys, and back."""

    def encode(self, key: str) -> str:
        """Return the stored key for a key of the application.

        Args:
            key: The key.
        """
        ...

    def decode(self, key: str) -> str:
        """Return the application's key. Raises `ValueError` if the codec cannot decode it.

        Args:
            key: The key.
        """
        ...


@runtime_checkable
class FilterCodec(Protocol):
    """A codec of keys that can also convert filters with wildcards."""

    def encode_filter(self, pattern: str) -> str:
        """Return the filter of stored keys for a filter of the application's keys."""
        ...


class KeyCodecs:
    """A codec that applies several codecs of keys. The first one encodes first and decodes last.

    Args:
        codecs: The codecs, in the order in which they encode.
    """

    def __init__(self, *codecs: KeyCodec) -> None:
        self._codecs: Final = codecs

    def encode(self, key: str) -> str:
        """Return the stored key.

        Args:
            key: The key.
        """
        for codec in self._codecs:
            key = codec.encode(key)
        return key

    def decode(self, key: str) -> str:
        """Return the application's key.

        Args:
            key: The key.
        """
        for codec in reversed(self._codecs):
            key = codec.decode(key)
        return key

    def encode_filter(self, pattern: str) -> str:
        """Return the filter of stored keys.

        Args:
            pattern: A filter of keys, with `*` for a token and `>` for the rest.
        """
        for codec in self._codecs:
            pattern = encode_filter(codec, pattern)
        return pattern


def encode_filter(codec: KeyCodec, pattern: str) -> str:
    """Return the filter of stored keys for a text that may be a filter.

    Raises `BadArgument` for a wildcard that the codec does not support.
    """
    if isinstance(codec, FilterCodec):
        return codec.encode_filter(pattern)
    if WILDCARDS.intersection(pattern.split(".")):
        raise BadArgument(
            f"filter {pattern!r}: {type(codec).__name__} has no encode_filter, so it only supports"
            " keys without wildcards"
        )
    return codec.encode(pattern)

"""The items of `KeyValue.put_many`, and its failures."""

from __future__ import annotations

from collections.abc import AsyncIterable, Iterable, Mapping
from typing import Any, cast

from attrs import frozen

from twinstream.errors import BadArgument, PublishFailure

__all__ = ["KeyPutFailure", "item_of", "items_of"]


@frozen(kw_only=True, repr=False, match_args=False)
class KeyPutFailure(PublishFailure):
    """An item of `put_many` that was not stored, or whose outcome is unknown, and the error.

    `request` is the message that was published, with the encoded key and value.
    """

    key: str
    """The key of the item."""
    value: Any
    """The value of the item."""

    __match_args__ = ("key", "error")

    def __repr__(self) -> str:
        return f"KeyPutFailure(key={self.key!r}, error={self.peek()!r})"

    def __reduce__(self) -> tuple[object, ...]:
        return (_failure, (self.request, self.peek(), self.key, self.value))


def _failure(request: Any, error: Any, key: str, value: Any) -> KeyPutFailure:
    return KeyPutFailure(request, error, key=key, value=value)


def items_of(items: object) -> object:
    """Return the items of a mapping, or `items` itself if it is another iterable.

    Raises `BadArgument` for other values.
    """
    if isinstance(items, Mapping):
        return cast("Mapping[str, Any]", items).items()
    if isinstance(items, str | bytes) or not isinstance(items, Iterable | AsyncIterable):
        raise BadArgument(f"expected a mapping, or pairs of key and value, got {items!r:.60}")
    return cast("object", items)


def item_of(given: object) -> tuple[str, Any]:
    """Return the key and the value of an item; raises `BadArgument` for anything but a pair."""
    pair = cast("tuple[str, Any]", given)
    if isinstance(given, tuple) and len(pair) == 2:
        return pair
    raise BadArgument(
        f"an item must be a pair of key and value, got {type(pair).__name__}: {pair!r:.60}"
    )

"""The codecs of one handle of a bucket."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, Generic, TypeVar, cast

from twinstream.core.arguments.check_arguments import check_kind
from twinstream.core.kv.names import check_filter_of_keys, check_key, check_stored_key
from twinstream.errors import BadArgument, BadPayload

if TYPE_CHECKING:
    from twinstream.codecs.key_codec import KeyCodec
    from twinstream.codecs.value_codec import ValueCodec

__all__ = ["PLAIN_CODECS", "Codecs", "named_error"]

V = TypeVar("V")
W = TypeVar("W")


class Codecs(Generic[V]):
    """The codecs of one handle of a bucket. Without a codec, values are bytes."""

    def __init__(self, key: KeyCodec | None, value: ValueCodec[V] | None) -> None:
        self.key: Final = key
        self.value: Final = value

    def encode_key(self, key: str) -> str:
        """Return the stored key. Raises `InvalidKey` if the stored key is invalid."""
        if self.key is None:
            return check_key(key)
        check_kind(key, str, "key", "text")
        return check_key(self.key.encode(key))

    def stored_key(self, key: str) -> str:
        """Return the stored key for a read or a removal, or for a write without validation.

        The stored key may break the rules, because another client may have written it. Raises
        `InvalidKey` if there can be no such key.
        """
        if self.key is None:
            return check_stored_key(key)
        check_kind(key, str, "key", "text")
        return check_stored_key(self.key.encode(key))

    def to_write(self, key: str, validate_keys: bool) -> str:
        """Return the stored key for a write; `validate_keys` chooses the rules."""
        return self.encode_key(key) if validate_keys else self.stored_key(key)

    def encode_filter(self, pattern: str) -> str:
        """Return the filter of stored keys.

        Raises `InvalidKey` if the stored filter is invalid, and `BadArgument` for a wildcard that
        the codec does not support.
        """
        if self.key is not None:
            from twinstream.codecs.key_codec import encode_filter

            check_kind(pattern, str, "a filter", "text")
            pattern = encode_filter(self.key, pattern)
        return check_filter_of_keys(pattern)

    def decode_key(self, key: str) -> str:
        """Return the application's key.

        Raises `ValueError` if the application's key has another stored key: the codec would decode
        both to it, and an entry of another client would appear in place of the application's.
        """
        if self.key is None:
            return key
        found = self.key.decode(key)
        if not self.has_stored(found, key):
            raise ValueError(f"{key!r} is not the stored key of {found!r}")
        return found

    def has_stored(self, key: str, stored: str) -> bool:
        """Return whether `stored` is the stored key of `key`."""
        if self.key is None:
            return key == stored
        try:
            return self.key.encode(key) == stored
        except Exception:
            # Codecs are user code, so they may raise any exception.
            return False

    def encode(self, bucket: str, key: str, value: V, validate_keys: bool) -> tuple[str, bytes]:
        """Return the stored key and value. Errors about the value name the bucket and the key."""
        stored = self.to_write(key, validate_keys)
        try:
            return stored, self.encode_value(value)
        except Exception as error:
            # Codecs are user code, so they may raise any exception.
            raise named_error(error, bucket, key) from error.__cause__

    def encode_value(self, value: V) -> bytes:
        """Return the stored bytes of a value. Raises `BadArgument` if the result is not bytes."""
        if self.value is None and isinstance(value, bytes):
            return value
        # Programs that store bytes load no codecs.
        from twinstream.codecs.plain import as_bytes

        return as_bytes(value if self.value is None else self.value.encode(value))

    def decode_value(self, data: bytes) -> V:
        """Return the application's value."""
        return cast("V", data) if self.value is None else self.value.decode(data)

    def with_codecs(
        self, key: KeyCodec | None, value: ValueCodec[W] | None
    ) -> Codecs[V] | Codecs[W]:
        """Return codecs that first encode with `key` and `value`, then with the existing codecs."""
        if getattr(value, "needs_headers", False):
            raise BadArgument(
                f"{type(value).__name__} writes headers, which a bucket does not store: use another"
                " form or codec"
            )
        keys = self.key if key is None else _before(key, self.key)
        if value is None:
            return Codecs(keys, self.value)
        own = cast("ValueCodec[bytes] | None", self.value)
        if own is None:
            return Codecs(keys, value)
        from twinstream.codecs.value_codec import ValueCodecs

        return Codecs(keys, ValueCodecs(value, own))


def named_error(error: Exception, bucket: str, key: str, revision: int | None = None) -> Exception:
    """Return the error of a codec with the bucket and the key, as text or as a note."""
    from twinstream.errors.payload import PayloadError

    if isinstance(error, PayloadError):
        return error.in_bucket(bucket, key, revision)
    where = f"bucket {bucket}, key {key!r}"
    if type(error) in (BadArgument, BadPayload):
        return type(error)(f"{where}: {error}")
    error.add_note(where)
    return error


def _before(first: KeyCodec, second: KeyCodec | None) -> KeyCodec:
    if second is None:
        return first
    from twinstream.codecs.key_codec import KeyCodecs

    return KeyCodecs(first, second)


PLAIN_CODECS: Final[Codecs[bytes]] = Codecs(None, None)
"""The codecs of a handle without codecs, which stores keys and values unchanged."""

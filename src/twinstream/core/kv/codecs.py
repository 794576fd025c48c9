"""Codecs: convert the keys and values of an application to stored ones, and back.

Source: ADR-54, and the codecs of orbit, which use base64 without padding for each token. A codec of
keys may also convert filters. Without `encode_filter` it only supports filters without wildcards.
"""

from __future__ import annotations

import json
from base64 import urlsafe_b64decode, urlsafe_b64encode
from importlib.util import find_spec
from typing import Any, Final, Generic, Protocol, TypeVar, cast, runtime_checkable

from twinstream.core.arguments.check_arguments import check_kind
from twinstream.core.kv.names import check_filter_of_keys, check_key, check_stored_key
from twinstream.errors import BadArgument, BadPayload

__all__ = [
    "PLAIN_CODECS",
    "Base64Keys",
    "Codecs",
    "FilterCodec",
    "JsonCodec",
    "KeyCodec",
    "KeyCodecs",
    "PathKeys",
    "ValueCodec",
    "ValueCodecs",
    "named_error",
]

V = TypeVar("V")
W = TypeVar("W")

_WILD: Final = frozenset({"*", ">"})
_ROOT: Final = "_root_"
_SUITABLE: Final = (
    "use a class of attrs, a dataclass, a TypedDict, a plain type, or a class with"
    " model_dump_json and model_validate_json"
)


class KeyCodec(Protocol):
    """A conversion of the application's keys to stored keys, and back."""

    def encode(self, key: str) -> str:
        """Return the stored key for a key of the application."""
        ...

    def decode(self, key: str) -> str:
        """Return the application's key. Raises `ValueError` if the codec cannot decode it."""
        ...


@runtime_checkable
class FilterCodec(Protocol):
    """A codec of keys that can also convert filters with wildcards."""

    def encode_filter(self, pattern: str) -> str:
        """Return the filter of stored keys for a filter of the application's keys."""
        ...


class ValueCodec(Protocol[V]):
    """A conversion of the application's values to stored bytes, and back."""

    def encode(self, value: V) -> bytes:
        """Return the stored bytes for a value."""
        ...

    def decode(self, data: bytes) -> V:
        """Return the value for stored bytes. May raise any error if it cannot decode them."""
        ...


class Base64Keys:
    """A codec for keys of arbitrary text. Tokens are stored in URL-safe base64 without padding."""

    def encode(self, key: str) -> str:
        """Return the stored key."""
        return ".".join(_to_base64(token) for token in key.split("."))

    def decode(self, key: str) -> str:
        """Return the application's key."""
        return ".".join(_from_base64(token) for token in key.split("."))

    def encode_filter(self, pattern: str) -> str:
        """Return the filter of stored keys. Wildcards stay unchanged."""
        tokens = pattern.split(".")
        return ".".join(token if token in _WILD else _to_base64(token) for token in tokens)


def _to_base64(token: str) -> str:
    return urlsafe_b64encode(token.encode()).rstrip(b"=").decode()


def _from_base64(token: str) -> str:
    data = token.encode()
    found = urlsafe_b64decode(data + b"=" * (-len(data) % 4)).decode()
    # The decoder accepts several spellings of a key, but only one is that of the key.
    if _to_base64(found) != token:
        raise ValueError(f"{token!r} is not the base64 of a key")
    return found


class PathKeys:
    """A codec for keys that are paths, such as `/site/page`.

    Paths are stored with dots instead of slashes, so that wildcards match their parts. A trailing
    `/` is dropped. A key with a dot raises `BadArgument`, because the dot would be decoded to a
    slash.
    """

    def encode(self, key: str) -> str:
        """Return the stored key."""
        if "." in key:
            raise BadArgument(f"key {key!r} contains a dot, which PathKeys uses to store '/'")
        return self.encode_filter(key)

    def decode(self, key: str) -> str:
        """Return the application's key."""
        if key == _ROOT:
            return "/"
        parts = key.replace(".", "/")
        return parts.removeprefix(_ROOT) if parts.startswith(f"{_ROOT}/") else parts

    def encode_filter(self, pattern: str) -> str:
        """Return the filter of stored keys."""
        if pattern == "/":
            return _ROOT
        stem = pattern.removesuffix("/")
        stem = f"{_ROOT}{stem}" if stem.startswith("/") else stem
        return stem.replace("/", ".")


class KeyCodecs:
    """A codec that applies several codecs of keys. The first one encodes first and decodes last."""

    def __init__(self, *codecs: KeyCodec) -> None:
        self._codecs: Final = codecs

    def encode(self, key: str) -> str:
        """Return the stored key."""
        for codec in self._codecs:
            key = codec.encode(key)
        return key

    def decode(self, key: str) -> str:
        """Return the application's key."""
        for codec in reversed(self._codecs):
            key = codec.decode(key)
        return key

    def encode_filter(self, pattern: str) -> str:
        """Return the filter of stored keys."""
        for codec in self._codecs:
            pattern = _filter(codec, pattern)
        return pattern


class ValueCodecs(Generic[V]):
    """A codec that applies several codecs of values. The first encodes first and decodes last.

    The first codec encodes the application's value. Each further codec encodes bytes.
    """

    def __init__(self, first: ValueCodec[V], *others: ValueCodec[bytes]) -> None:
        self._first: Final = first
        self._others: Final = others

    def encode(self, value: V) -> bytes:
        """Return the stored bytes."""
        data = self._first.encode(value)
        for codec in self._others:
            data = codec.encode(data)
        return data

    def decode(self, data: bytes) -> V:
        """Return the application's value."""
        for codec in reversed(self._others):
            data = codec.decode(data)
        return self._first.decode(data)


class JsonCodec(Generic[V]):
    """A codec for values of one class, which are stored as JSON. `KeyValue.typed` uses it.

    `model` is an attrs class, a dataclass, a `TypedDict`, a plain type such as `dict[str, int]`, or
    a class with `model_validate_json` and `model_dump_json`, such as a pydantic model. All but the
    last need the extra `payloads`, which is cattrs; without it, `ModuleNotFoundError` is raised.
    """

    def __init__(self, model: type[V]) -> None:
        self._model: Final = model
        self._has_own: Final = hasattr(model, "model_validate_json")
        if not self._has_own and find_spec("cattrs") is None:
            raise ModuleNotFoundError(
                f"typed({_name(model)}) needs cattrs, which is not installed; install Twinstream"
                " with its extra payloads (in a clone: pip install '.[payloads]'), or use a class"
                " with model_validate_json and model_dump_json, such as a pydantic model",
                name="cattrs",
            )
        self._converter: Any = None

    def encode(self, value: V) -> bytes:
        """Return the stored bytes."""
        if self._has_own:
            text: str = cast("Any", value).model_dump_json()
            return text.encode()
        try:
            plain = self._cattrs().unstructure(value, unstructure_as=self._model)
            return json.dumps(plain, ensure_ascii=False, separators=(",", ":")).encode()
        except Exception as error:
            # cattrs calls the caller's class, which may raise any exception.
            raise BadArgument(
                f"a value of type {type(value).__name__} cannot be stored as JSON of"
                f" typed({_name(self._model)}): {error}; {_SUITABLE}"
            ) from error

    def decode(self, data: bytes) -> V:
        """Return the application's value. Raises `BadPayload` if the data does not fit the class.

        A class with its own `model_validate_json` raises its own error.
        """
        if self._has_own:
            return cast("V", cast("Any", self._model).model_validate_json(data))
        try:
            return cast("V", self._cattrs().structure(json.loads(data), self._model))
        except Exception as error:
            reason = _reason(error)
            raise BadPayload(
                f"the value does not fit typed({_name(self._model)}): {reason}"
            ) from error

    def _cattrs(self) -> Any:
        if self._converter is None:
            # cattrs is imported on first use, because its import takes long.
            from cattrs.preconf.json import make_converter

            self._converter = make_converter()
        return self._converter


def _name(model: Any) -> str:
    return model.__name__ if isinstance(model, type) else str(model)


def _reason(error: Exception) -> str:
    """Return what does not fit: the error of a nested value is in a group of cattrs."""
    if isinstance(error, ExceptionGroup):
        from cattrs import transform_error

        return "; ".join(transform_error(cast("Any", error)))
    hint = f"; {_SUITABLE}" if type(error).__name__ == "StructureHandlerNotFoundError" else ""
    return f"{error}{hint}"


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
            pattern = _filter(self.key, pattern)
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
        data: object = value if self.value is None else self.value.encode(value)
        if isinstance(data, bytes):
            return data
        if isinstance(data, bytearray):
            return bytes(data)
        if isinstance(data, memoryview):
            return cast("memoryview[int]", data).tobytes()
        if isinstance(data, str):
            raise BadArgument("a value must be bytes, got text: encode it, or use typed(str)")
        raise BadArgument(f"a value must be bytes, got {type(data).__name__}: use typed(...)")

    def decode_value(self, data: bytes) -> V:
        """Return the application's value."""
        return cast("V", data) if self.value is None else self.value.decode(data)

    def with_codecs(
        self, key: KeyCodec | None, value: ValueCodec[W] | None
    ) -> Codecs[V] | Codecs[W]:
        """Return codecs that first encode with `key` and `value`, then with the existing codecs."""
        keys = self.key if key is None else _before(key, self.key)
        if value is None:
            return Codecs(keys, self.value)
        own = cast("ValueCodec[bytes] | None", self.value)
        return Codecs(keys, value if own is None else ValueCodecs(value, own))


def named_error(error: Exception, bucket: str, key: str) -> Exception:
    """Return the error of a codec with the bucket and the key, as text or as a note."""
    where = f"bucket {bucket}, key {key!r}"
    if type(error) in (BadArgument, BadPayload):
        return type(error)(f"{where}: {error}")
    error.add_note(where)
    return error


def _before(first: KeyCodec, second: KeyCodec | None) -> KeyCodec:
    return first if second is None else KeyCodecs(first, second)


def _filter(codec: KeyCodec, pattern: str) -> str:
    check_kind(pattern, str, "a filter", "text")
    if isinstance(codec, FilterCodec):
        return codec.encode_filter(pattern)
    if _WILD.intersection(pattern.split(".")):
        raise BadArgument(
            f"filter {pattern!r}: {type(codec).__name__} has no encode_filter, so it only supports"
            " keys without wildcards"
        )
    return codec.encode(pattern)


PLAIN_CODECS: Final[Codecs[bytes]] = Codecs(None, None)
"""The codecs of a handle without codecs, which stores keys and values unchanged."""

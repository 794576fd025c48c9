"""`MsgspecCodec`: JSON by msgspec. Only programs that have msgspec load it."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, Final, Generic, TypeVar, cast

from twinstream.codecs.json_text import JSON
from twinstream.codecs.type_name import type_name
from twinstream.errors import BadArgument
from twinstream.errors.payload import PayloadError

__all__ = ["MsgspecCodec"]

T = TypeVar("T")


class MsgspecCodec(Generic[T]):
    """A codec for the types of msgspec: its structs, attrs classes, dataclasses and plain types.

    It is the fastest codec for JSON. Raises `BadArgument` if msgspec cannot encode the type, or is
    not installed.

    Args:
        model: The type of the values.
    """

    content_type = JSON
    """The media type of the payloads."""

    def __init__(self, model: type[T]) -> None:
        try:
            from msgspec import DecodeError, ValidationError
            from msgspec.json import Decoder, Encoder
        except ImportError as error:
            raise BadArgument("MsgspecCodec needs msgspec: pip install msgspec") from error
        _check(model)
        self._model: Final = model
        self._decode: Final = Decoder(model).decode
        self._encode: Final = Encoder().encode
        self._errors: Final = (DecodeError, ValidationError)
        self._class: Final = model if type(model) is type or _is_struct(model) else None

    def encode(self, value: T) -> bytes:
        """Return the value as JSON. Raises `BadArgument` for a value of another type.

        Args:
            value: The value to encode.
        """
        if self._class is not None and not isinstance(value, self._class):
            raise BadArgument(
                f"a value of type {type(value).__name__} is no {type_name(self._model)}"
            )
        try:
            return self._encode(value)
        except Exception as error:
            raise BadArgument(
                f"a value of type {type(value).__name__} cannot be encoded as"
                f" {type_name(self._model)}: {error}"
            ) from error

    def decode(self, data: bytes) -> T:
        """Return the value. Raises `PayloadError` with the path of what does not fit.

        Args:
            data: The bytes of a payload.
        """
        try:
            return self._decode(data)
        except self._errors as error:
            reason, _, place = str(error).partition(" - at `")
            raise PayloadError(place.removesuffix("`"), reason) from error
        except RecursionError as error:
            raise PayloadError("", "nested too deeply") from error
        except Exception as error:
            # A class may have an initialiser of its own, which may raise any exception.
            raise PayloadError("", f"{type(error).__name__}: {error}") from error


def _is_struct(model: object) -> bool:
    from msgspec import Struct

    return isinstance(model, type) and issubclass(model, Struct)


def _check(model: Any) -> None:
    """Raise `BadArgument` if a part of the type is not one of msgspec's."""
    from msgspec import inspect

    try:
        info = inspect.type_info(model)
    except Exception as error:
        raise BadArgument(f"msgspec cannot encode {type_name(model)}: {error}") from error
    unknown_type = _custom(info, set())
    if unknown_type is not None:
        raise BadArgument(
            f"msgspec cannot encode {type_name(model)}: it has a {type_name(unknown_type)}"
        )


def _custom(node: Any, seen: set[int]) -> Any:
    """Return the first type that msgspec does not know, or None."""
    from msgspec import Struct, inspect

    if id(node) in seen:
        return None
    seen.add(id(node))
    if isinstance(node, inspect.CustomType):
        return node.cls
    if isinstance(node, tuple):
        parts = list(cast("Iterable[Any]", node))
    elif isinstance(node, Struct):
        parts = [getattr(node, name) for name in node.__struct_fields__ if name != "default"]
    else:
        return None
    return next(
        (unknown_type for part in parts if (unknown_type := _custom(part, seen)) is not None), None
    )

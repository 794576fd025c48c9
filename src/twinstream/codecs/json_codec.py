"""`JsonCodec`: JSON of attrs classes, dataclasses and plain types, by cattrs."""

from __future__ import annotations

from typing import Any, Final, Generic, TypeVar, cast

from twinstream.codecs.json_text import JSON, from_json, to_json
from twinstream.codecs.json_types import check_json_type
from twinstream.codecs.type_name import type_name
from twinstream.errors import BadArgument
from twinstream.errors.payload import PayloadError

__all__ = ["JsonCodec"]

T = TypeVar("T")


class JsonCodec(Generic[T]):
    """A codec for values of one type, which are JSON.

    `model` is an attrs class, a dataclass, a `TypedDict`, a plain type such as
    `dict[str, int]`, or made of such types, enumerations, literals, `datetime`, `date`, `UUID` and
    `Decimal` (text in JSON). Unknown members of an object are ignored. A number is never made of a
    text, nor the reverse.

    Raises `BadArgument` if a part of the type cannot be encoded, and if cattrs is not installed
    (the extra payloads).
    """

    content_type = JSON
    """The media type of the payloads."""

    def __init__(self, model: type[T]) -> None:
        check_json_type(model)
        from twinstream.codecs.json_converter import hooks_of

        structure, unstructure = hooks_of(model)
        self._model: Final[Any] = model
        self._structure: Final = structure
        self._unstructure: Final = unstructure

    def encode(self, value: T) -> bytes:
        """Return the value as JSON. Raises `BadArgument` for a value of another type.

        Args:
            value: The value to encode.
        """
        try:
            return to_json(self._unstructure(value))
        except Exception as error:
            # cattrs calls the caller's class, which may raise any exception.
            raise BadArgument(
                f"a value of type {type(value).__name__} cannot be encoded as JSON of"
                f" {type_name(self._model)}: {error}"
            ) from error

    def decode(self, data: bytes) -> T:
        """Return the value. Raises `PayloadError` with the path of what does not fit.

        Args:
            data: The bytes of a payload.
        """
        plain = from_json(data)
        try:
            return cast("T", self._structure(plain, self._model))
        except Exception as error:
            # The caller's class may raise any exception.
            from twinstream.codecs.json_converter import explained

            path, reason = explained(error)
            raise PayloadError(path, reason) from error

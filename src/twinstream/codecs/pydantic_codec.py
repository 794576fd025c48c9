"""`PydanticCodec`: JSON of pydantic models. Only programs that have pydantic load it."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final, Generic, TypeVar, cast

from twinstream.codecs.json_text import JSON
from twinstream.codecs.type_name import type_name
from twinstream.errors import BadArgument
from twinstream.errors.payload import PayloadError

__all__ = ["PydanticCodec"]

T = TypeVar("T")


class PydanticCodec(Generic[T]):
    """A codec for a pydantic model, or for a type of such models, such as `list[Order]`.

    It also serves other classes with `model_validate_json` and `model_dump_json`. The aliases of a
    model are the names in the JSON. Raises `BadArgument` if pydantic cannot encode the type.

    Args:
        model: The type of the values.
    """

    content_type = JSON
    """The media type of the payloads."""

    def __init__(self, model: type[T]) -> None:
        read, dump = _calls(model)
        self._model: Final = model
        self._read: Final[Callable[[bytes], T]] = read
        self._dump: Final[Callable[[T], bytes]] = dump

    def encode(self, value: T) -> bytes:
        """Return the value as JSON. Raises `BadArgument` for a value of another type.

        Args:
            value: The value to encode.
        """
        try:
            return self._dump(value)
        except Exception as error:
            # The model's own serializers may raise any exception.
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
            return self._read(data)
        except Exception as error:
            # The model's own validators may raise any exception.
            path, reason = _explained(error)
            raise PayloadError(path, reason) from error


def _calls(model: Any) -> tuple[Callable[[bytes], Any], Callable[[Any], bytes]]:
    """Return the functions that read and write the JSON of a type."""
    from twinstream.codecs.libraries import is_pydantic

    if hasattr(model, "model_validate_json") and not is_pydantic(model):

        def dump_own(value: Any) -> bytes:
            return cast("bytes", value.model_dump_json().encode())

        return model.model_validate_json, dump_own
    from pydantic import TypeAdapter
    from pydantic.errors import PydanticUserError

    try:
        adapter: Any = TypeAdapter(model)
        # Pydantic finds a type that it cannot write only when it describes the JSON.
        adapter.json_schema(mode="serialization")
    except (PydanticUserError, NameError) as error:
        raise BadArgument(f"pydantic cannot encode {type_name(model)}: {error}") from error

    def dump(value: Any) -> bytes:
        if is_pydantic(model) and not isinstance(value, model):
            # Pydantic would write the members of any object.
            raise TypeError(f"not a {type_name(model)}")
        return cast("bytes", adapter.dump_json(value, by_alias=True, warnings="error"))

    return adapter.validate_json, dump


def _explained(error: Exception) -> tuple[str, str]:
    """Return the path of the first error of a validation, and what is wrong."""
    errors: Any = getattr(error, "errors", None)
    found: list[dict[str, Any]] = []
    if callable(errors):
        found = cast("Any", errors)(include_url=False, include_context=False, include_input=False)
    if not found:
        return "", f"{type(error).__name__}: {error}"
    first, more = found[0], len(found) - 1
    path = "$" + "".join(_step(each) for each in first["loc"])
    return path, f"{first['msg']}" + (f" (and {more} more errors)" if more else "")


def _step(part: object) -> str:
    return f"[{part}]" if isinstance(part, int) else f".{part}"

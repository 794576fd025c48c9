"""Conversion between JSON and models, without loss.

For every response or event, `encode(decode(text)) == json.loads(text)`. `Model.unknown` keeps
explicit nulls and the members that this release does not know. An unknown value of an enumeration
becomes a new member of that enumeration. Durations and times have nanosecond precision.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from importlib import import_module
from typing import TYPE_CHECKING, Any, TypeVar, overload

from attrs.exceptions import NotAnAttrsClassError

from twinstream.models.codec.decode_error import DecodeError
from twinstream.models.codec.decoding import Faults, read_record, typos
from twinstream.models.codec.encoding import write_record
from twinstream.models.codec.json_object import JsonObject
from twinstream.models.codec.model import Model
from twinstream.models.index import MODULES, TYPES

if TYPE_CHECKING:
    from twinstream.models.generated.common import ErrorResponse

M = TypeVar("M", bound=Model)


@overload
def decode(data: bytes | str | Mapping[str, Any]) -> Model: ...
@overload
def decode(data: bytes | str | Mapping[str, Any], as_: type[M], *, strict: bool = False) -> M: ...
def decode(
    data: bytes | str | Mapping[str, Any], as_: type[Model] | None = None, *, strict: bool = False
) -> Model:
    """Return the record in `data`.

    Args:
        data: JSON text, or the members of a JSON object.
        as_: The class of the record. By default, the `type` member determines the class. Without
            `as_`, a response with an error is decoded as `ErrorResponse`, and an event of an
            unknown type as `UnknownEvent`.
        strict: Whether a member without a field is an error. Use it for files that people write,
            to find misspelt members.

    Raises:
        DecodeError: The data is not valid JSON, or not a valid record of the class.
    """
    members = load_object(data, "JSON" if as_ is None else as_.__name__)
    target = class_of(members) if as_ is None else as_
    return _read(members, target, strict=strict)


def decode_response(data: bytes | str | Mapping[str, Any], as_: type[M]) -> M | ErrorResponse:
    """Return an API response as a record of `as_`, or as `ErrorResponse` if it has an error.

    Raises `DecodeError` if the response is not a valid record of that class.

    Args:
        data: The response as text or as its members.
        as_: The class of the record.
    """
    members = load_object(data, as_.__name__)
    if members.get("error") is not None:
        from twinstream.models.generated.common import ErrorResponse

        return _read(members, ErrorResponse)
    return _read(members, as_)


def encode(model: Model) -> JsonObject:
    """Return `model` as a dict that `json.dumps` accepts. Fields that are None are omitted.

    Raises `TypeError` if a field contains another value instead of a record.
    """
    try:
        return write_record(model)
    except NotAnAttrsClassError as error:
        from twinstream.models.codec.misplaced import misplaced

        raise TypeError(misplaced(model)) from error


def encode_json(model: Model) -> bytes:
    """Return `model` as compact JSON text in UTF-8. Raises `TypeError` like `encode`."""
    return json.dumps(encode(model), separators=(",", ":"), ensure_ascii=False).encode()


def class_of(members: Mapping[str, Any]) -> type[Model]:
    """Return the class for the `type` member of a response or event.

    An API response with an error has the class `ErrorResponse`. An unknown type has the class
    `UnknownEvent`. Raises `DecodeError` if there is no `type`.
    """
    name = members.get("type")
    if not isinstance(name, str):
        raise DecodeError("JSON", [("type", "missing; pass the class as as_=")])
    if name in TYPES and members.get("error") is None:
        return model_class(TYPES[name])
    if name.startswith("io.nats.jetstream.api.") and members.get("error") is not None:
        return model_class("ErrorResponse")
    return model_class(TYPES.get(name, "UnknownEvent"))


def model_class(name: str) -> type[Model]:
    """Import and return the generated class with this name."""
    found: type[Model] = getattr(import_module(MODULES[name]), name)
    return found


def load_object(data: bytes | str | Mapping[str, Any], what: str) -> Mapping[str, Any]:
    """Return the members of a JSON object; a mapping is returned unchanged.

    `what` names the expected record in the error. Raises `DecodeError` if the text is not a valid
    JSON object.
    """
    if isinstance(data, Mapping):
        return data
    try:
        loaded: object = _DECODER.decode(data if isinstance(data, str) else str(data, "utf-8"))
    except RecursionError:
        raise DecodeError(what, [("", "nested too deeply")]) from None
    except ValueError as error:
        raise DecodeError(what, [("", f"not JSON: {error}")]) from None
    if not isinstance(loaded, dict):
        kind = type(loaded).__name__  # pyright: ignore[reportUnknownArgumentType, reportUnknownVariableType]
        raise DecodeError(what, [("", f"expected an object, got {kind}")])
    return loaded  # pyright: ignore[reportUnknownVariableType]


def _refuse_constant(word: str) -> object:
    raise ValueError(f"{word} is not a JSON value")


# All calls share a decoder, because json.loads with parse_constant creates one for each call.
_DECODER = json.JSONDecoder(parse_constant=_refuse_constant)


def _read(members: Mapping[str, Any], cls: type[M], *, strict: bool = False) -> M:
    """Return an instance of `cls`. Raises `DecodeError`, with `strict` also for typos in keys."""
    try:
        model = read_record(cls, members)
    except Faults as faults:
        problems = [(path.removeprefix("."), reason) for path, reason in faults.problems]
        raise DecodeError(cls.__name__, problems) from None
    found = typos(model) if strict else []
    if found:
        raise DecodeError(cls.__name__, found)
    return model

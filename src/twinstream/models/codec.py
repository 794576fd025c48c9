"""JSON to models and back, without loss.

``encode(decode(text)) == json.loads(text)`` for everything a server sends: members that this
release does not know, and explicit nulls, are kept in ``Model.unknown``; words that enumerations do
not know become members of their own; durations and times are exact in nanoseconds.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from functools import cache
from importlib import import_module
from typing import TYPE_CHECKING, Any, TypeVar, overload

from attrs.exceptions import NotAnAttrsClassError

from twinstream.models._index import MODULES, TYPES
from twinstream.models._json import JsonObject
from twinstream.models._misplaced import misplaced
from twinstream.models._model import Model
from twinstream.models.restorable import Restorable

if TYPE_CHECKING:
    from twinstream.models._hooks import Hooks
    from twinstream.models.generated.common import ErrorResponse

M = TypeVar("M", bound=Model)


class DecodeError(Restorable, ValueError):
    """The data is not the record that was asked for.

    ``problems`` has a path such as ``config.ack_wait`` and a reason for each place; the path is
    empty where the whole text is at fault.
    """

    def __init__(self, what: str, problems: list[tuple[str, str]]) -> None:
        self.what = what
        self.problems = problems
        shown = "; ".join(f"{path}: {reason}" if path else reason for path, reason in problems)
        super().__init__(f"cannot read {what}: {shown}")


@overload
def decode(data: bytes | str | Mapping[str, Any]) -> Model: ...
@overload
def decode(data: bytes | str | Mapping[str, Any], as_: type[M], *, strict: bool = False) -> M: ...
def decode(
    data: bytes | str | Mapping[str, Any], as_: type[Model] | None = None, *, strict: bool = False
) -> Model:
    """Return the record that ``data`` (JSON text, or its members) holds.

    Without ``as_`` the record's class comes from the ``type`` member: an answer with an error is
    an ``ErrorResponse``, a type that this release does not know an ``UnknownEvent``. With
    ``strict`` a member without a field is an error, as it should be in what people write.
    Raises ``DecodeError``.
    """
    members = load_object(data, "JSON" if as_ is None else as_.__name__)
    target = class_of(members) if as_ is None else as_
    return _hooks().structure(members, target, strict=strict)


def decode_response(data: bytes | str | Mapping[str, Any], as_: type[M]) -> M | ErrorResponse:
    """Return an API answer as ``as_``, or as ``ErrorResponse`` where it carries an error.

    Raises ``DecodeError`` where it is neither.
    """
    members = load_object(data, as_.__name__)
    if members.get("error") is not None:
        from twinstream.models.generated.common import ErrorResponse

        return _hooks().structure(members, ErrorResponse)
    return _hooks().structure(members, as_)


def encode(model: Model) -> JsonObject:
    """Return the members of ``model`` as ``json.dumps`` takes them; what is None is left out.

    Raises ``TypeError`` where something else stands in the place of a record.
    """
    try:
        return _hooks().unstructure(model)
    except NotAnAttrsClassError as error:
        raise TypeError(misplaced(model)) from error


def encode_json(model: Model) -> bytes:
    """Return ``model`` as JSON text in UTF-8, without blanks."""
    return json.dumps(encode(model), separators=(",", ":"), ensure_ascii=False).encode()


def class_of(members: Mapping[str, Any]) -> type[Model]:
    """Return the class that the ``type`` member of an answer or event names."""
    name = members.get("type")
    if not isinstance(name, str):
        raise DecodeError("JSON", [("type", "missing; say what it is with as_=")])
    if name in TYPES and members.get("error") is None:
        return model_class(TYPES[name])
    if name.startswith("io.nats.jetstream.api.") and members.get("error") is not None:
        return model_class("ErrorResponse")
    return model_class(TYPES.get(name, "UnknownEvent"))


def model_class(name: str) -> type[Model]:
    """Return the generated class called ``name``, importing only the module that has it."""
    found: type[Model] = getattr(import_module(MODULES[name]), name)
    return found


def load_object(data: bytes | str | Mapping[str, Any], what: str) -> Mapping[str, Any]:
    """Return the members of a JSON text; every fault of the text is a ``DecodeError``."""
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


# json.loads would make a decoder for each call that refuses constants.
_DECODER = json.JSONDecoder(parse_constant=_refuse_constant)


@cache
def _hooks() -> Hooks:
    # cattrs takes longer to import than all of this package: a program that only writes configs
    # and never reads an answer does not pay for it.
    from twinstream.models._hooks import Hooks

    return Hooks()

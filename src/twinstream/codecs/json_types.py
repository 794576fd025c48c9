"""Which types `JsonCodec` can encode and decode: checked when a codec is made, not at first use."""

from __future__ import annotations

import collections.abc as abc
from collections import deque
from dataclasses import fields, is_dataclass
from datetime import date, datetime
from decimal import Decimal
from enum import Enum
from types import NoneType, UnionType
from typing import (
    Any,
    Final,
    Literal,
    TypeVar,
    Union,
    cast,
    get_args,
    get_origin,
    get_type_hints,
    is_typeddict,
)
from uuid import UUID

from twinstream.codecs.libraries import is_struct, own_json
from twinstream.codecs.type_name import type_name
from twinstream.errors import BadArgument

__all__ = ["check_json_type"]

_PLAIN: Final[set[Any]] = {
    *(str, int, float, bool, bytes, None, NoneType, Any),
    *(datetime, date, UUID, Decimal, list, dict, tuple, set, frozenset),
}
# `Sequence` and the other abstract types are those of `collections.abc`.
_CONTAINERS: Final[set[Any]] = {
    *(list, tuple, set, frozenset, deque, dict),
    *(abc.Sequence, abc.MutableSequence, abc.Set, abc.MutableSet, abc.Mapping, abc.MutableMapping),
}
_MAPPINGS: Final[set[Any]] = {dict, abc.Mapping, abc.MutableMapping}
# A name of a JSON object is a text.
_KEYS: Final[set[Any]] = {str, int, UUID, Decimal, datetime, date, Any}
_SUITABLE: Final = (
    "use a class of attrs, a dataclass, a TypedDict, a plain type, or a class with"
    " model_dump_json and model_validate_json"
)


def check_json_type(model: Any) -> None:
    """Raise `BadArgument` if JSON of the type cannot be written or read. Name the part."""
    _Check().check(model, type_name(model), {})


class _Check:
    """The check of one type. A class that contains itself is checked once."""

    def __init__(self) -> None:
        self._seen: set[int] = set()

    def check(self, model: Any, place: str, variables: dict[Any, Any]) -> None:
        """Raise `BadArgument` if a value of the type `model` cannot be JSON.

        `place` names the part of the type for the error. `variables` are the types of type
        variables.
        """
        model = variables.get(model, model) if isinstance(model, TypeVar) else model
        origin, arguments = get_origin(model), get_args(model)
        if hasattr(model, "__metadata__") or hasattr(model, "__supertype__"):
            # `Annotated`, or `NewType`.
            inner = model.__origin__ if origin is not None else model.__supertype__
            self.check(inner, place, variables)
        elif type(model).__name__ == "TypeAliasType":
            self.check(model.__value__, place, variables)
        elif is_struct(model):
            _refuse(place, model, "a struct of msgspec: use MsgspecCodec")
        elif own_json(model):
            _refuse(place, model, "a class with its own JSON: use PydanticCodec")
        elif origin in (Union, UnionType):
            for each in arguments:
                self.check(each, place, variables)
        elif origin is Literal:
            self._check_values(arguments, place, model)
        elif origin in _CONTAINERS:
            self._check_container(origin, arguments, place, variables)
        elif isinstance(model, type) and issubclass(model, Enum):
            self._check_values([each.value for each in model], place, model)
        elif _is_class(origin or model):
            self._check_members(origin or model, arguments, place)
        elif model not in _PLAIN:
            _refuse(place, model, f"not a type of JSON: {_SUITABLE}")

    def _check_container(
        self, origin: Any, arguments: tuple[Any, ...], place: str, variables: dict[Any, Any]
    ) -> None:
        """Check the types in a container. The keys of a mapping must be names in JSON."""
        if origin in _MAPPINGS:
            key = variables.get(arguments[0], arguments[0])
            is_enum = isinstance(key, type) and issubclass(key, Enum)
            if key not in _KEYS and not is_enum and get_origin(key) is not Literal:
                _refuse(f"a key of {place}", key, "not a name of a JSON object")
        for each in arguments:
            if each is not Ellipsis:
                self.check(each, place, variables)

    def _check_values(self, values: abc.Iterable[Any], place: str, model: Any) -> None:
        if not all(type(each) in {str, int, float, bool, NoneType} for each in values):
            _refuse(place, model, "not only values of JSON")

    def _check_members(self, kind: Any, arguments: tuple[Any, ...], place: str) -> None:
        """Check the types of the members of a class, once."""
        if id(kind) in self._seen:
            return
        self._seen.add(id(kind))
        try:
            hints = get_type_hints(kind, include_extras=True)
        except Exception as error:
            raise BadArgument(f"{place}: an annotation cannot be resolved: {error}") from error
        variables = dict(zip(getattr(kind, "__parameters__", ()), arguments, strict=False))
        for name, hint in _members(kind, hints).items():
            self.check(hint, f"{type_name(kind)}.{name}", variables)


def _is_class(kind: Any) -> bool:
    if not isinstance(kind, type):
        return False
    found = cast("Any", kind)
    if hasattr(found, "__attrs_attrs__") or is_dataclass(found) or is_typeddict(found):
        return True
    # A named tuple.
    return hasattr(found, "_fields") and issubclass(found, tuple)


def _members(kind: Any, hints: dict[str, Any]) -> dict[str, Any]:
    """Return the types of the members of a class that are stored."""
    if hasattr(kind, "__attrs_attrs__"):
        names = [each.name for each in kind.__attrs_attrs__ if each.init]
    elif is_dataclass(kind):
        names = [each.name for each in fields(kind) if each.init]
    else:
        return {name: _required(hint) for name, hint in hints.items()}
    return {name: hints.get(name, Any) for name in names}


def _required(hint: Any) -> Any:
    """Return the type in `Required[...]`, `NotRequired[...]` or `ReadOnly[...]`."""
    name = getattr(get_origin(hint), "_name", "")
    return get_args(hint)[0] if name in {"Required", "NotRequired", "ReadOnly"} else hint


def _refuse(place: str, model: Any, why: str) -> None:
    raise BadArgument(f"JsonCodec cannot encode {place}: {type_name(model)} is {why}")

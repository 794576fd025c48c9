"""The function that reads one class of records.

The function that cattrs would generate looks for each of a config's forty fields in turn, and then
runs the converters of the constructor over values that are right already. Answers hold only a few
of the fields: this one goes through those and puts the values into a new record directly, which
takes about half the time. Faults are reported as by cattrs.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, TypeAlias, TypeVar, cast

import attrs
from cattrs import AttributeValidationNote, ClassValidationError

from twinstream.models._model import Model

M = TypeVar("M", bound=Model)

Read: TypeAlias = Callable[[Any, Any], Any]
"""Reads a value of the given type, as hooks of cattrs do."""


class Mismatch(ValueError):
    """A value of another kind than the schema says."""


def record_reader(cls: type[M], read_of: Callable[[Any], Read]) -> Callable[[Any, Any], M]:
    """Make the function that reads a ``cls`` and keeps what it has no field for.

    ``read_of`` returns the function for a field's type.
    """
    fields = [item for item in attrs.fields(attrs.resolve_types(cls)) if item.name != "unknown"]
    table = {item.name: _Field(cls, item, read_of).entry for item in fields}
    # Fields with a default are absent as None; only the constant of a type has another default.
    required = [item.name for item in fields if item.default is attrs.NOTHING]
    setters = [_slot(cls, item.name).__set__ for item in fields]
    keep, new, field_of = _slot(cls, "unknown").__set__, object.__new__, table.get

    def structure(data: Any, _: object) -> M:
        if type(data) is not dict and not isinstance(data, Mapping):
            raise Mismatch(f"expected an object, got {show(data)}")
        members = cast("Mapping[str, Any]", data)
        model = new(cls)
        for put in setters:
            put(model, None)
        unknown: dict[str, Any] = {}
        faults: list[Exception] = []
        for name, value in members.items():
            field = field_of(name)
            if field is None:
                unknown[name] = value
                continue
            plain, put, read, kind, optional = field
            if type(value) is plain:
                put(model, value)
            elif value is None and optional:
                unknown[name] = None
            else:
                try:
                    put(model, read(value, kind))
                except Exception as error:
                    faults.append(_noted(error, cls, name, kind))
        for name in required:
            if name not in members:
                faults.append(_noted(KeyError(name), cls, name, table[name][3]))
        if faults:
            raise ClassValidationError(f"While structuring {cls.__name__}", faults, cls)  # pyright: ignore[reportCallIssue]
        keep(model, unknown)
        return model

    return structure


class _Field:
    """What reading one field takes, put together once."""

    def __init__(self, cls: type, item: attrs.Attribute[Any], read_of: Callable[[Any], Read]):
        kind = without_none(item.type)
        # Most values are texts, numbers and flags: their type alone tells whether they are right.
        plain = kind if kind in (str, int, bool) else None
        put = _slot(cls, item.name).__set__
        self.entry = (plain, put, read_of(kind), kind, kind is not item.type)


def _slot(cls: type, name: str) -> Any:
    """Return the slot of a field, which may be inherited."""
    return next(vars(base)[name] for base in cls.__mro__ if name in vars(base))


def _noted(error: Exception, cls: type, name: str, kind: Any) -> Exception:
    note = f"Structuring class {cls.__name__} @ attribute {name}"
    error.add_note(AttributeValidationNote(note, name, kind))
    return error


def without_none(hint: Any) -> Any:
    """Return what an optional type holds when it is not None; others as they are."""
    kinds = [kind for kind in getattr(hint, "__args__", ()) if kind is not type(None)]
    is_optional = type(None) in getattr(hint, "__args__", ())
    return kinds[0] if is_optional and len(kinds) == 1 else hint


def show(value: object) -> str:
    """Return a value for a message, cut to a readable length."""
    text = "null" if value is None else repr(value)
    return text if len(text) <= 60 else f"{text[:57]}..."

"""The kind of each field of a record: a class, or a list or map of a class.

The annotations of generated models have only the forms `X`, `list[X]` and `dict[str, X]`, each with
or without ` | None`, where `X` may also be a list. This module parses them itself, without
`typing`.
"""

from __future__ import annotations

import sys
from typing import Any, NamedTuple

from twinstream.models.codec.model import Model
from twinstream.models.codec.open_enum import OpenEnum
from twinstream.models.codec.records import Member

__all__ = ["Kind", "is_enumeration", "is_record", "kind_of"]

_PLAIN = {"str": str, "int": int, "bool": bool, "bytes": bytes}


class Kind(NamedTuple):
    """The type of the values of a field."""

    form: str
    """`"list"` or `"dict"` for a list or map of values of `cls`; `""` for a single value."""
    cls: Any
    """The class of the value or of the items; a `Kind` if the items are lists or maps."""
    is_optional: bool


def kind_of(record: type, name: str, member: Member) -> Kind:
    """Return the kind of the field `name` of the class `record`."""
    if not isinstance(member.hint, str):
        return _of_object(member.hint)
    return _of_text(record, name, member.hint)


def _of_text(record: type, name: str, hint: str) -> Kind:
    text = hint.removesuffix(" | None")
    is_optional = text != hint
    form, bracket, inner = text.partition("[")
    if not bracket:
        return Kind("", _PLAIN.get(text) or _named(record, name, text), is_optional)
    each = _of_text(record, name, inner.removesuffix("]").removeprefix("str, "))
    return Kind(form, each if each.form else each.cls, is_optional)


def _named(record: type, field: str, name: str) -> Any:
    """Return the class `name` from the module of the class that annotates the field."""
    for base in record.__mro__:
        if field in vars(base).get("__annotations__", ()):
            return getattr(sys.modules[base.__module__], name)
    raise TypeError(f"{record.__name__}.{field}: there is no annotation")


def _of_object(hint: Any) -> Kind:
    """Return the kind for an evaluated annotation, which only fields of `attrs` classes have."""
    kinds = [each for each in getattr(hint, "__args__", ()) if each is not type(None)]
    is_optional = type(None) in getattr(hint, "__args__", ())
    kind = kinds[0] if is_optional and len(kinds) == 1 else hint
    origin = getattr(kind, "__origin__", None)
    if origin in (list, dict):
        each = _of_object(kind.__args__[-1])
        return Kind(origin.__name__, each if each.form else each.cls, is_optional)
    return Kind("", kind, is_optional)


def is_record(cls: Any) -> bool:
    """Whether `cls` is a subclass of `Model`."""
    return isinstance(cls, type) and issubclass(cls, Model)


def is_enumeration(cls: Any) -> bool:
    """Whether `cls` is a subclass of `OpenEnum`."""
    return isinstance(cls, type) and issubclass(cls, OpenEnum)

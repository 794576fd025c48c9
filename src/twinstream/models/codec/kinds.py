"""The kind of each field of a record: a class, or a list or map of a class.

The annotations of models have only the forms `X`, `list[X]` and `dict[str, X]`, each with or
without ` | None`, where `X` may also be a list.
"""

from __future__ import annotations

from types import NoneType
from typing import Any, NamedTuple, get_args, get_origin

from attrs import fields, resolve_types

from twinstream.models.codec.model import Model
from twinstream.models.codec.open_enum import OpenEnum

__all__ = ["Kind", "is_enumeration", "is_record", "kinds_of"]


class Kind(NamedTuple):
    """The type of the values of a field."""

    form: str
    """`"list"` or `"dict"` for a list or map of values of `cls`; `""` for a single value."""
    cls: Any
    """The class of the value or of the items; a `Kind` if the items are lists or maps."""
    is_optional: bool


def kinds_of(record: type[Model]) -> dict[str, Kind]:
    """Return the kind of each field of the class `record`, by name.

    Raises `NotAnAttrsClassError` for a class that attrs did not make.
    """
    return {each.name: _kind(each.type) for each in fields(resolve_types(record))}


def _kind(hint: Any) -> Kind:
    """Return the kind for the annotation of a field."""
    parts = get_args(hint)
    kinds = [each for each in parts if each is not NoneType]
    is_optional = len(kinds) < len(parts)
    kind = kinds[0] if is_optional and len(kinds) == 1 else hint
    form = get_origin(kind)
    if form in (list, dict):
        each = _kind(get_args(kind)[-1])
        return Kind(form.__name__, each if each.form else each.cls, is_optional)
    return Kind("", kind, is_optional)


def is_record(cls: Any) -> bool:
    """Whether `cls` is a subclass of `Model`."""
    return isinstance(cls, type) and issubclass(cls, Model)


def is_enumeration(cls: Any) -> bool:
    """Whether `cls` is a subclass of `OpenEnum`."""
    return isinstance(cls, type) and issubclass(cls, OpenEnum)

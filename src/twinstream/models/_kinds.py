"""The kinds of the fields of a record: classes, and lists or maps of them.

The annotations of generated models have few forms, which this module parses without `typing`:
`Kind`, `list[Kind]` and `dict[str, Kind]`, each optionally with ` | None`. The items of a list or
map may be lists.
"""

from __future__ import annotations

import sys
from typing import Any, NamedTuple

from twinstream.models._model import Model
from twinstream.models._open_enum import OpenEnum
from twinstream.models.records import Member

__all__ = ["Kind", "is_enumeration", "is_record", "kind_of"]

_PLAIN = {"str": str, "int": int, "bool": bool, "bytes": bytes}


class Kind(NamedTuple):
    """The type of a field's values."""

    form: str
    """`""` for one value of `cls`; for a list or map of values, `list` or `dict`."""
    cls: Any
    """A class, or the `Kind` of the items if these are lists or maps."""
    is_optional: bool


def kind_of(record: type, name: str, member: Member) -> Kind:
    """Return the kind of a field of a class."""
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
    """Return the class with a name that an annotation uses, from the module of the record."""
    for base in record.__mro__:
        if field in vars(base).get("__annotations__", ()):
            return getattr(sys.modules[base.__module__], name)
    raise TypeError(f"{record.__name__}.{field}: there is no annotation")


def _of_object(hint: Any) -> Kind:
    """Return the kind for an evaluated annotation; attrs evaluates those of its classes."""
    kinds = [each for each in getattr(hint, "__args__", ()) if each is not type(None)]
    is_optional = type(None) in getattr(hint, "__args__", ())
    kind = kinds[0] if is_optional and len(kinds) == 1 else hint
    origin = getattr(kind, "__origin__", None)
    if origin in (list, dict):
        each = _of_object(kind.__args__[-1])
        return Kind(origin.__name__, each if each.form else each.cls, is_optional)
    return Kind("", kind, is_optional)


def is_record(cls: Any) -> bool:
    """Whether a class is a record."""
    return isinstance(cls, type) and issubclass(cls, Model)


def is_enumeration(cls: Any) -> bool:
    """Whether a class is an enumeration of words."""
    return isinstance(cls, type) and issubclass(cls, OpenEnum)

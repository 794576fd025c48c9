"""Types of the values that a JSON Schema describes, and the common type of two values."""

from __future__ import annotations

from collections.abc import Iterable
from functools import reduce
from typing import Final

import pyarrow as pa
from attrs import evolve, frozen

from twinstream.spark.decode import fields

__all__ = ["ANYTHING", "NOTHING", "ONLY_NULL", "Typed", "common", "member"]

_MOST_DIGITS: Final = 38
_NULL: Final = pa.null()
# The types of values that are strings in JSON.
_TEXTS: Final = (fields.STRING, fields.TIMESTAMP, fields.DATE)
# The types that may round a number.
_INEXACT: Final = (fields.DOUBLE, fields.FLOAT)


@frozen
class Typed:
    """The type of a value. If `kind` is `None`, the value is kept as JSON text.

    `nullable` means that the value may be null. `exact` means that numbers in the value must
    not change when they are converted to doubles.
    """

    kind: pa.DataType | None
    nullable: bool = False
    exact: bool = False


ANYTHING: Final = Typed(None, nullable=True)
NOTHING: Final = Typed(_NULL)
ONLY_NULL: Final = Typed(_NULL, nullable=True)


def member(name: str, typed: Typed, comment: str = "", *, needed: bool = False) -> pa.Field:
    """Return the column for a member of a type. With `needed`, the member must be present."""
    kind = typed.kind
    if kind is None or kind == _NULL:
        return fields.json_text(name, comment, must_exist=needed)
    exact = typed.exact and _has_double(kind)
    if needed:
        return fields.required(name, kind, comment, nullable=typed.nullable, exact=exact)
    return fields.optional(name, kind, comment, exact=exact)


def common(kinds: Iterable[Typed]) -> Typed:
    """Return a type that accepts the values of all `kinds`, or `NOTHING` if there are none."""
    return reduce(_common, kinds, NOTHING)


def _common(first: Typed, second: Typed) -> Typed:
    nullable = first.nullable or second.nullable
    if first.kind == _NULL:
        return evolve(second, nullable=nullable)
    if second.kind == _NULL:
        return evolve(first, nullable=nullable)
    exact = any(each.exact or not _has_inexact(each.kind) for each in (first, second))
    return Typed(_wider(first.kind, second.kind), nullable, exact)


def _has_double(kind: pa.DataType | None) -> bool:
    return _leaf(kind) == fields.DOUBLE


def _has_inexact(kind: pa.DataType | None) -> bool:
    return _leaf(kind) in _INEXACT


def _leaf(kind: pa.DataType | None) -> pa.DataType | None:
    """Return the type of the innermost values of nested arrays and maps."""
    while isinstance(kind, pa.ListType | pa.MapType):
        kind = kind.value_type if isinstance(kind, pa.ListType) else kind.item_type
    return kind


def _wider(first: pa.DataType | None, second: pa.DataType | None) -> pa.DataType | None:
    """Return a type for the values of both types, or `None` if the values must be JSON text."""
    if first is None or second is None:
        return None
    match first, second:
        case pa.StructType(), pa.StructType():
            return _records(first, second)
        case pa.ListType(), pa.ListType():
            element = _wider(first.value_type, second.value_type)
            return None if element is None else fields.array_of(element)
        case pa.MapType(), pa.MapType():
            value = _wider(first.item_type, second.item_type)
            return None if value is None else fields.map_of(value)
        case _ if first == second:
            return first
        case _ if first in _TEXTS and second in _TEXTS:
            return fields.STRING
        case _:
            return _wider_number(first, second)


def _wider_number(first: pa.DataType, second: pa.DataType) -> pa.DataType | None:
    sizes = [_digits(first), _digits(second)]
    if any(each in _INEXACT for each in (first, second)):
        others = (_digits(each) or each in _INEXACT for each in (first, second))
        return fields.DOUBLE if all(others) else None
    if None in sizes:
        return None
    if all(map(pa.types.is_integer, (first, second))):
        return fields.LONG
    whole = max(size[0] for size in sizes if size)
    scale = max(size[1] for size in sizes if size)
    return pa.decimal128(whole + scale, scale) if whole + scale <= _MOST_DIGITS else None


def _digits(kind: pa.DataType) -> tuple[int, int] | None:
    """Return the maximum numbers of digits before and after the decimal point.

    Return `None` if the type is neither an integer nor a decimal.
    """
    match kind:
        case fields.INTEGER:
            return 10, 0
        case fields.LONG:
            return 19, 0
        case pa.Decimal128Type():
            return kind.precision - kind.scale, kind.scale
        case _:
            return None


def _records(first: pa.StructType, second: pa.StructType) -> pa.StructType:
    """Return a struct with the members of both structs.

    A member that only one of the structs has is optional in the result.
    """
    ours = {each.name: each for each in first}
    theirs = {each.name: each for each in second}
    found: list[pa.Field] = []
    for name in {**ours, **theirs}:
        pair = [each for each in (ours.get(name), theirs.get(name)) if each is not None]
        needed = len(pair) > 1 and all(map(fields.is_required, pair))
        comment = next((text for each in pair if (text := fields.comment_of(each))), "")
        found.append(member(name, common(map(_typed, pair)), comment, needed=needed))
    return fields.record(*found)


def _typed(field: pa.Field) -> Typed:
    if fields.is_json(field):
        return ANYTHING
    return Typed(field.type, fields.is_nullable(field), fields.is_exact(field))

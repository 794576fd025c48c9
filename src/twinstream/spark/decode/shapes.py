"""Types for Arrow's JSON reader, and the conversion of its columns to the types of the schema.

The reader parses timestamps and dates as text, so that no digit is lost. This module converts the
text, and checks that the values are in range.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Final, TypeAlias

import pyarrow as pa
import pyarrow.compute as pc

from twinstream.spark.decode import fields
from twinstream.spark.decode.block_refused import BlockRefused
from twinstream.spark.decode.scalars import (
    FIRST_DAY,
    FIRST_MOMENT,
    LAST_DAY,
    LAST_MOMENT,
    MOMENT_PATTERN,
)

__all__ = ["Shape", "is_plain", "parsed_type", "shape_of"]

Shape: TypeAlias = Callable[[pa.Array], pa.Array]
"""A function that converts a parsed array to the type of its column, or raises `BlockRefused`."""

# A `Shape` for a member of a struct.
# The second argument is a mask of the structs that are null, or `None` if no struct is null.
_Member: TypeAlias = Callable[[pa.Array, pa.Array | None], pa.Array]

_NANOSECONDS: Final = r"(\.\d{6})\d+"


def is_plain(spec: pa.Field) -> bool:
    """Return whether Arrow's JSON reader can parse values of the column."""
    return not fields.is_json(spec) and _is_plain(spec.type)


def _is_plain(kind: pa.DataType) -> bool:
    match kind:
        case pa.StructType():
            return all(map(is_plain, kind))
        case pa.ListType():
            return _is_plain(kind.value_type)
        case pa.MapType() | pa.Decimal128Type() | fields.BINARY:
            return False
        case _:
            return True


def parsed_type(kind: pa.DataType) -> pa.DataType:
    """Return the Arrow type with which the reader parses a column of this type."""
    match kind:
        case pa.StructType():
            return pa.struct([pa.field(f.name, parsed_type(f.type)) for f in kind])
        case pa.ListType():
            return pa.list_(parsed_type(kind.value_type))
        case _:
            return pa.string() if pa.types.is_temporal(kind) else kind


def shape_of(spec: pa.Field) -> Shape:
    """Return the conversion for a column that `is_plain` accepts."""
    finish = _member(spec)
    return lambda array: finish(array, None)


def _member(spec: pa.Field) -> _Member:
    """Return the conversion for a member, which refuses null if the member is required.

    A required member may be null in a struct that is null itself.
    """
    shape = _shape(spec.type)
    if not fields.is_required(spec):
        return lambda array, absent: shape(array)

    def finish(array: pa.Array, absent: pa.Array | None) -> pa.Array:
        if array.null_count:
            missing = array.is_null() if absent is None else pc.and_not(array.is_null(), absent)
            if pc.any(missing).as_py():
                raise BlockRefused(_rows_where(missing) if absent is None else ())
        return shape(array)

    return finish


def _shape(kind: pa.DataType) -> Shape:
    """Return the conversion for values of a type, from the type that the reader parses."""
    target = fields.bare(kind)
    match kind:
        case pa.StructType():
            return _record(kind)
        case pa.ListType():
            return _list(_shape(kind.value_type), target)
        case _ if pa.types.is_timestamp(target):
            return lambda array: _within(_moments(array, target), array, FIRST_MOMENT, LAST_MOMENT)
        case _ if pa.types.is_date(target):
            return lambda array: _within(_cast(array, target), array, FIRST_DAY, LAST_DAY)
        case _ if pa.types.is_floating(target):
            return _finite
        case _:
            return lambda array: array.cast(target)


def _record(kind: pa.StructType) -> Shape:
    members = [_member(spec) for spec in kind]
    specs = [*map(fields.bare_field, kind)]

    def shape(array: pa.Array) -> pa.Array:
        absent = array.is_null() if array.null_count else None
        parts = array.flatten()
        done = [finish(part, absent) for part, finish in zip(parts, members, strict=True)]
        return pa.StructArray.from_arrays(done, fields=specs, mask=absent)

    return shape


def _list(shape: Shape, target: pa.DataType) -> Shape:
    def shape_all(array: pa.Array) -> pa.Array:
        mask = array.is_null() if array.null_count else None
        try:
            values = shape(array.values)
        except BlockRefused:
            raise BlockRefused from None  # the error has positions of items, not of messages
        return pa.ListArray.from_arrays(array.offsets, values, type=target, mask=mask)

    return shape_all


def _finite(array: pa.Array) -> pa.Array:
    finite = pc.is_finite(array)
    # Without `min_count`, the result for a column without values is null.
    if not pc.all(finite, min_count=0).as_py():
        raise BlockRefused(_rows_where(pc.invert(finite)))
    return array


def _cast(array: pa.Array, target: pa.DataType) -> pa.Array:
    try:
        return array.cast(target)
    except pa.ArrowInvalid as error:
        raise BlockRefused(_quoted_rows(array, str(error))) from None


def _quoted_rows(array: pa.Array, error: str) -> list[int]:
    """Return the rows whose value is the text that the error message of a cast quotes.

    Return an empty list if the message quotes no text.
    """
    _, _, rest = error.partition("'")
    text, found, _ = rest.rpartition("'")
    return _rows_where(pc.equal(array, text)) if found else []


def _moments(array: pa.Array, target: pa.DataType) -> pa.Array:
    try:
        return array.cast(target)
    except pa.ArrowInvalid:  # usually a timestamp has more digits than microseconds have
        cut = pc.replace_substring_regex(array, _NANOSECONDS, r"\1")
    try:
        return _cast(cut, target)
    except BlockRefused as refused:
        others = _rows_where(pc.invert(pc.match_substring_regex(array, MOMENT_PATTERN)))
        raise BlockRefused(sorted({*others, *refused.rows})) from None


def _within(found: pa.Array, texts: pa.Array, first: int, last: int) -> pa.Array:
    """Return `found`, timestamps or dates, if all of them are from `first` to `last`.

    Otherwise raise `BlockRefused` with the rows whose value is out of range.
    """
    numbers = found.cast(pa.int64() if pa.types.is_timestamp(found.type) else pa.int32())
    ends = pc.min_max(numbers).as_py()
    if ends["min"] is not None and not first <= ends["min"] <= ends["max"] <= last:
        raise BlockRefused(_rows_where(pc.or_(pc.less(numbers, first), pc.greater(numbers, last))))
    return found


def _rows_where(mask: pa.Array) -> list[int]:
    return pc.indices_nonzero(mask.fill_null(False)).to_pylist()

"""Convert columns between Arrow and Iceberg."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from itertools import count
from typing import Final, TypeAlias

import pyarrow as pa
from pyiceberg.schema import Schema
from pyiceberg.types import (
    BinaryType,
    BooleanType,
    DateType,
    DecimalType,
    DoubleType,
    FloatType,
    IcebergType,
    IntegerType,
    ListType,
    LongType,
    MapType,
    NestedField,
    StringType,
    StructType,
    TimestampType,
    TimestamptzType,
)

__all__ = ["Unrepresentable", "arrow_columns", "iceberg_columns"]

_PLAIN: Final[dict[pa.DataType, IcebergType]] = {
    pa.bool_(): BooleanType(),
    pa.int32(): IntegerType(),
    pa.int64(): LongType(),
    pa.float32(): FloatType(),
    pa.float64(): DoubleType(),
    pa.string(): StringType(),
    pa.binary(): BinaryType(),
    pa.date32(): DateType(),
    pa.timestamp("us", "UTC"): TimestamptzType(),
    pa.timestamp("us"): TimestampType(),
}
_ARROW: Final = {iceberg: arrow for arrow, iceberg in _PLAIN.items()}

_Ids: TypeAlias = Callable[[], int]

# The maximum number of digits of a decimal in Iceberg.
_DIGITS: Final = 38


# Names of columns that readers add to each table.
_RESERVED: Final = (
    *("_file", "_pos", "_deleted", "_spec_id", "_partition"),
    *("_row_id", "_last_updated_sequence_number"),
)


class Unrepresentable(Exception):
    """Raised for a column that Iceberg cannot have. `column` is its name with dots."""

    def __init__(self, column: str, reason: str) -> None:
        super().__init__(f"column {column!r} has {reason}")
        self.column: Final = column


def iceberg_columns(columns: Iterable[pa.Field]) -> Schema:
    """Return the columns as Iceberg has them. Their IDs are those of no table.

    Raises `Unrepresentable` for a column that Iceberg cannot have.
    """
    numbers, found = count(1), list(columns)
    for each in found:
        if each.name.lower() in _RESERVED:
            raise Unrepresentable(each.name, "the name of a column that readers of Iceberg add")
    return Schema(*_fields(found, "", lambda: next(numbers)))


def arrow_columns(schema: Schema) -> pa.Schema:
    """Return the columns of a table as Arrow has them."""
    return pa.schema([_arrow_field(each) for each in schema.fields])


def _fields(columns: Iterable[pa.Field], above: str, ids: _Ids) -> list[NestedField]:
    return [_field(each, f"{above}{each.name}", ids) for each in columns]


def _field(column: pa.Field, name: str, ids: _Ids) -> NestedField:
    comment = (column.metadata or {}).get(b"comment")
    return NestedField(
        field_id=ids(),
        name=column.name,
        field_type=_type(column.type, name, ids),
        required=not column.nullable,
        doc=comment.decode() if comment else None,
    )


def _type(kind: pa.DataType, name: str, ids: _Ids) -> IcebergType:
    plain = _PLAIN.get(kind)
    if plain is not None:
        return plain
    match kind:
        case pa.Decimal128Type() if kind.precision <= _DIGITS and kind.scale >= 0:
            return DecimalType(kind.precision, kind.scale)
        case pa.StructType() if len(list(kind)):
            return StructType(*_fields(kind, f"{name}.", ids))
        case pa.ListType():
            element = _type(kind.value_type, f"{name}.element", ids)
            return ListType(ids(), element, element_required=False)
        case pa.MapType():
            key = _type(kind.key_type, f"{name}.key", ids)
            value = _type(kind.item_type, f"{name}.value", ids)
            return MapType(ids(), key, ids(), value, value_required=False)
        case _:
            raise Unrepresentable(name, f"the type {kind}, which Iceberg does not have")


def _arrow_field(field: NestedField) -> pa.Field:
    return pa.field(field.name, _arrow_type(field.field_type), not field.required)


def _arrow_type(kind: IcebergType) -> pa.DataType:
    """Return the Arrow type. A type that only other programs use gets the null type."""
    match kind:
        case DecimalType():
            return pa.decimal128(kind.precision, kind.scale)
        case StructType():
            return pa.struct([_arrow_field(each) for each in kind.fields])
        case ListType():
            return pa.list_(pa.field("element", _arrow_type(kind.element_type)))
        case MapType():
            return pa.map_(_arrow_type(kind.key_type), _arrow_type(kind.value_type))
        case _:
            return _ARROW.get(kind, pa.null())

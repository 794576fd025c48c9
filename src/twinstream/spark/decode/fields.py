"""Columns of typed tables: a Spark type, a comment, and metadata for the decoder.

A Spark schema has all that decoding needs, so one representation serves the generated types, a
user's JSON Schema and a user's Spark schema. Three facts cannot be expressed by a Spark type and
are stored in the field's metadata: that a member must be present, that a text column has the JSON
text of a value, and that a double must not change a number.
"""

from __future__ import annotations

from typing import Final

from pyspark.sql.types import (
    ArrayType,
    BinaryType,
    BooleanType,
    DataType,
    DateType,
    DecimalType,
    DoubleType,
    FloatType,
    IntegerType,
    LongType,
    MapType,
    StringType,
    StructField,
    StructType,
    TimestampType,
)

__all__ = [
    "BINARY",
    "BOOLEAN",
    "DATE",
    "DECIMAL20",
    "DOUBLE",
    "FLOAT",
    "INTEGER",
    "LONG",
    "STRING",
    "TIMESTAMP",
    "array_of",
    "comment_of",
    "is_exact",
    "is_json",
    "is_nullable",
    "is_required",
    "json_text",
    "map_of",
    "optional",
    "record",
    "required",
]

BINARY: Final = BinaryType()
BOOLEAN: Final = BooleanType()
DATE: Final = DateType()
DOUBLE: Final = DoubleType()
FLOAT: Final = FloatType()
INTEGER: Final = IntegerType()
LONG: Final = LongType()
STRING: Final = StringType()
TIMESTAMP: Final = TimestampType()
DECIMAL20: Final = DecimalType(20, 0)
"""Wide enough for every unsigned 64-bit number."""

_REQUIRED: Final = "twinstream.required"
_NULLABLE: Final = "twinstream.nullable"
_JSON: Final = "twinstream.json"
_EXACT: Final = "twinstream.exact"
_COMMENT: Final = "comment"


def record(*fields: StructField) -> StructType:
    """Return the type of an object with these members."""
    return StructType(list(fields))


def array_of(element: DataType) -> ArrayType:
    """Return the type of an array."""
    return ArrayType(element, containsNull=True)


def map_of(value: DataType) -> MapType:
    """Return the type of an object with arbitrary member names."""
    return MapType(StringType(), value, valueContainsNull=True)


def required(
    name: str, kind: DataType, comment: str = "", *, nullable: bool = False, exact: bool = False
) -> StructField:
    """Return a member that must be present; with ``nullable`` it may be null.

    With ``exact`` a number that a double would change is a misfit.
    """
    extra = {_REQUIRED: True, _NULLABLE: True} if nullable else {_REQUIRED: True}
    return _field(name, kind, comment, {**extra, _EXACT: True} if exact else extra)


def optional(name: str, kind: DataType, comment: str = "", *, exact: bool = False) -> StructField:
    """Return a member that may be absent or null; see `required` for ``exact``."""
    return _field(name, kind, comment, {_EXACT: True} if exact else {})


def json_text(name: str, comment: str = "", *, must_exist: bool = False) -> StructField:
    """Return a text column that has the member's value, of any type, as JSON."""
    extra = {_JSON: True, _REQUIRED: True, _NULLABLE: True} if must_exist else {_JSON: True}
    return _field(name, STRING, comment, extra)


def is_required(field: StructField) -> bool:
    """Return whether the member must be present."""
    return bool(field.metadata.get(_REQUIRED))


def is_nullable(field: StructField) -> bool:
    """Return whether a member that must be present may be null."""
    return not is_required(field) or bool(field.metadata.get(_NULLABLE))


def is_exact(field: StructField) -> bool:
    """Return whether doubles of the column, also in arrays and maps, must not change a number."""
    return bool(field.metadata.get(_EXACT))


def comment_of(field: StructField) -> str:
    """Return the column's comment."""
    return str(field.metadata.get(_COMMENT, ""))


def is_json(field: StructField) -> bool:
    """Return whether the column holds JSON text."""
    return bool(field.metadata.get(_JSON))


def _field(name: str, kind: DataType, comment: str, extra: dict[str, bool]) -> StructField:
    metadata: dict[str, object] = {**extra}
    if comment:
        metadata[_COMMENT] = comment
    # All columns are nullable: a message that does not match has a row with null in each.
    return StructField(name, kind, nullable=True, metadata=metadata)

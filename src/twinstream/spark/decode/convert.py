"""Convert one parsed JSON value exactly to the type of its column, or raise `ColumnMismatch`.

This module is the slow path of decoding. It converts the few messages that the vectorized path
refuses, and values of types that the vectorized path cannot handle (maps, decimals, JSON text).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Final, TypeAlias, cast

from pyspark.sql.types import (
    ArrayType,
    BinaryType,
    BooleanType,
    ByteType,
    DataType,
    DateType,
    DecimalType,
    DoubleType,
    FloatType,
    IntegerType,
    LongType,
    MapType,
    ShortType,
    StringType,
    StructField,
    StructType,
    TimestampType,
)

from twinstream.spark.decode import fields, scalars
from twinstream.spark.decode.column_mismatch import (
    ColumnMismatch,
    Converter,
    Extras,
    unicode_text,
    wrong_kind,
)
from twinstream.spark.errors import SchemaError

__all__ = ["Take", "converter", "member_converter"]

Take: TypeAlias = Callable[[dict[str, object], Extras], object]
"""A function that returns the converted value of one member of a parsed object.

Its second argument is a dictionary to which it adds members without a column.
"""

_MESSAGE: Final = "the message"

_WIDTH: Final[Mapping[type[DataType], int]] = {
    ByteType: 8,
    ShortType: 16,
    IntegerType: 32,
    LongType: 64,
}


def converter(kind: DataType, *, lenient: bool = False) -> Converter:
    """Return the function that converts values for a column of this type.

    With `lenient`, text columns accept any value as JSON text, as in Spark's `from_json`.
    Raises `SchemaError` for a type that JSON has no values for.
    """
    return _Compiler(lenient).compile(kind, _MESSAGE)


def member_converter(spec: StructField, *, lenient: bool = False) -> Take:
    """Return the function that converts a message's member for its column `spec`.

    `lenient` and the raised `SchemaError` are as for `converter`.
    """
    return _Compiler(lenient).member(spec, _MESSAGE)


class _Compiler:
    def __init__(self, lenient: bool) -> None:
        self._lenient = lenient

    def compile(self, kind: DataType, where: str, *, exact: bool = False) -> Converter:
        match kind:
            case StructType():
                return self._record(kind, where)
            case ArrayType():
                return self._array(kind, where, exact)
            case MapType():
                return self._map(kind, where, exact)
            case StringType():
                return scalars.text_or_json(where) if self._lenient else scalars.text(where)
            case ByteType() | ShortType() | IntegerType() | LongType():
                return scalars.integer(where, _WIDTH[type(kind)])
            case DecimalType():
                return scalars.decimal(where, kind)
            case DoubleType() | FloatType():
                return scalars.number(where, single=isinstance(kind, FloatType), exact=exact)
            case BooleanType():
                return scalars.boolean(where)
            case TimestampType():
                return scalars.moment(where)
            case DateType():
                return scalars.day(where)
            case BinaryType():
                return scalars.base64_bytes(where)
            case _:
                raise SchemaError(
                    f"{where}: JSON has no values for a column of type {kind.simpleString()}"
                )

    def _record(self, kind: StructType, where: str) -> Converter:
        members = [(field.name, self.member(field, where)) for field in kind.fields]
        known = frozenset(kind.names)

        def convert(value: object, extras: Extras) -> object:
            if value is None:
                return None
            if not isinstance(value, dict):
                raise wrong_kind(where, "an object", value)
            record = cast(dict[str, object], value)
            row = {name: take(record, extras) for name, take in members}
            if record.keys() - known:
                extras.update((name, record[name]) for name in record if name not in known)
            return row

        return convert

    def member(self, field: StructField, where: str) -> Take:
        name, path = field.name, field.name if where == _MESSAGE else f"{where}.{field.name}"
        convert = (
            scalars.json_column
            if fields.is_json(field)
            else self.compile(field.dataType, path, exact=fields.is_exact(field))
        )
        needed, nullable = fields.is_required(field), fields.is_nullable(field)
        nests = _nests(field.dataType)

        def take(record: dict[str, object], extras: Extras) -> object:
            value = record.get(name)
            if value is None:
                if needed and (not nullable or name not in record):
                    state = "null" if name in record else "missing"
                    raise ColumnMismatch(f"{path}: required member is {state}")
                if name not in record or not fields.is_json(field):
                    return None
            if not nests:
                return convert(value, extras)
            inner: Extras = {}
            converted = convert(value, inner)
            if inner:
                extras[name] = inner
            return converted

        return take

    def _array(self, kind: ArrayType, where: str, exact: bool) -> Converter:
        convert = self.compile(kind.elementType, f"{where}[]", exact=exact)
        nests = _nests(kind.elementType)

        def convert_all(value: object, extras: Extras) -> object:
            if value is None:
                return None
            if not isinstance(value, list):
                raise wrong_kind(where, "an array", value)
            if not nests:
                return [convert(each, extras) for each in cast(list[object], value)]
            return [
                _nested(convert, each, extras, str(index))
                for index, each in enumerate(cast(list[object], value))
            ]

        return convert_all

    def _map(self, kind: MapType, where: str, exact: bool) -> Converter:
        if not isinstance(kind.keyType, StringType):
            raise SchemaError(f"{where}: the keys of a map from JSON must be strings")
        convert = self.compile(kind.valueType, f"{where}.*", exact=exact)
        nests = _nests(kind.valueType)

        def convert_all(value: object, extras: Extras) -> object:
            if value is None:
                return None
            if not isinstance(value, dict):
                raise wrong_kind(where, "an object", value)
            pairs = cast(dict[str, object], value).items()
            if not nests:
                return [(unicode_text(key, where), convert(each, extras)) for key, each in pairs]
            return [
                (unicode_text(key, where), _nested(convert, each, extras, key))
                for key, each in pairs
            ]

        return convert_all


def _nests(kind: DataType) -> bool:
    """Return whether values of the type may contain extras."""
    return isinstance(kind, StructType | ArrayType | MapType)


def _nested(convert: Converter, value: object, extras: Extras, key: str) -> object:
    inner: Extras = {}
    converted = convert(value, inner)
    if inner:
        extras[key] = inner
    return converted

"""Convert one parsed JSON value exactly to the type of its column, or raise `ColumnMismatch`.

This module is the slow path of decoding. It converts the few messages that the vectorized path
refuses, and values of types that the vectorized path cannot handle (maps, decimals, JSON text).
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Final, TypeAlias, cast

import pyarrow as pa

from twinstream.spark.decode import fields, scalars
from twinstream.spark.decode.column_mismatch import (
    ColumnMismatch,
    Converter,
    Extras,
    unicode_text,
    wrong_kind,
)
from twinstream.spark.decode.sql_names import sql_name
from twinstream.spark.errors import SchemaError

__all__ = ["Take", "converter", "member_converter"]

Take: TypeAlias = Callable[[dict[str, object], Extras], object]
"""A function that returns the converted value of one member of a parsed object.

Its second argument is a dictionary to which it adds members without a column.
"""

_MESSAGE: Final = "the message"


def converter(kind: pa.DataType, *, lenient: bool = False) -> Converter:
    """Return the function that converts values for a column of this type.

    With `lenient`, text columns accept any value as JSON text, as in Spark's `from_json`.
    Raises `SchemaError` for a type that JSON has no values for.
    """
    return _Compiler(lenient).compile(kind, _MESSAGE)


def member_converter(spec: pa.Field, *, lenient: bool = False) -> Take:
    """Return the function that converts a message's member for its column `spec`.

    `lenient` and the raised `SchemaError` are as for `converter`.
    """
    return _Compiler(lenient).member(spec, _MESSAGE)


class _Compiler:
    """A builder of converters, which recurses from a type to the types inside it.

    `where` is the path of a value in errors.
    """

    def __init__(self, lenient: bool) -> None:
        self._lenient = lenient

    def compile(self, kind: pa.DataType, where: str, *, exact: bool = False) -> Converter:
        """Return the converter for values of a type.

        With `exact`, numbers do not fit if a float or double would lose some of their digits.
        """
        match kind:
            case pa.StructType():
                return self._record(kind, where)
            case pa.ListType():
                return self._array(kind, where, exact)
            case pa.MapType():
                return self._map(kind, where, exact)
            case pa.Decimal128Type():
                return scalars.decimal(where, kind)
            case fields.STRING:
                return scalars.text_or_json(where) if self._lenient else scalars.text(where)
            case fields.DOUBLE | fields.FLOAT:
                return scalars.number(where, single=kind == fields.FLOAT, exact=exact)
            case fields.BOOLEAN:
                return scalars.boolean(where)
            case fields.TIMESTAMP:
                return scalars.moment(where)
            case fields.DATE:
                return scalars.day(where)
            case fields.BINARY:
                return scalars.base64_bytes(where)
            case _ if pa.types.is_signed_integer(kind):
                return scalars.integer(where, kind.bit_width)
            case _:
                raise SchemaError(
                    f"{where}: JSON has no values for a column of type {sql_name(kind)}"
                )

    def _record(self, kind: pa.StructType, where: str) -> Converter:
        """Return a converter of objects, whose members without a column become extras."""
        members = [(field.name, self.member(field, where)) for field in kind]
        known = frozenset(name for name, _ in members)

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

    def member(self, field: pa.Field, where: str) -> Take:
        """Return the function that takes a member from its object `where`, and converts it.

        A missing member and null give null, unless the member is required. A column of JSON text
        distinguishes them: null in the message gives the text `null`.
        """
        name = field.name
        path = name if where == _MESSAGE else f"{where}.{name}"
        convert = (
            scalars.json_column
            if fields.is_json(field)
            else self.compile(field.type, path, exact=fields.is_exact(field))
        )
        required, nullable = fields.is_required(field), fields.is_nullable(field)
        is_json, nests = fields.is_json(field), _nests(field.type)

        def take(record: dict[str, object], extras: Extras) -> object:
            value = record.get(name)
            if value is None:
                is_present = name in record
                if required and not (nullable and is_present):
                    state = "null" if is_present else "missing"
                    raise ColumnMismatch(f"{path}: required member is {state}")
                if not (is_present and is_json):
                    return None
            if not nests:
                return convert(value, extras)
            return _nested(convert, value, extras, name)

        return take

    def _array(self, kind: pa.ListType, where: str, exact: bool) -> Converter:
        """Return a converter of arrays. The index of an item is the key of its extras."""
        convert = self.compile(kind.value_type, f"{where}[]", exact=exact)
        nests = _nests(kind.value_type)

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

    def _map(self, kind: pa.MapType, where: str, exact: bool) -> Converter:
        """Return a converter from objects with any member names to the pairs of a map."""
        if kind.key_type != fields.STRING:
            raise SchemaError(f"{where}: the keys of a map from JSON must be strings")
        convert = self.compile(kind.item_type, f"{where}.*", exact=exact)
        nests = _nests(kind.item_type)

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


def _nests(kind: pa.DataType) -> bool:
    """Return whether values of the type may contain extras."""
    return pa.types.is_nested(kind)


def _nested(convert: Converter, value: object, extras: Extras, key: str) -> object:
    """Return the converted value, and add the extras inside it to `extras[key]`."""
    inner: Extras = {}
    converted = convert(value, inner)
    if inner:
        extras[key] = inner
    return converted

"""Convert one parsed JSON value to what a column takes: exact, strict, with a reason when not.

This is the careful half of decoding. It runs for the few messages that the vectorised half
refuses, and for schemas that it cannot serve (maps, decimals, JSON text).
"""

from __future__ import annotations

import base64
import binascii
import json
import re
from collections.abc import Callable, Mapping
from datetime import UTC, date, datetime, timedelta, timezone
from decimal import Decimal
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

from js_spark import fields
from js_spark.errors import SchemaError

__all__ = ["Extras", "Misfit", "converter", "parse", "to_json"]

Converter: TypeAlias = Callable[[object, "Extras"], object]
Extras: TypeAlias = dict[str, object]
"""Members without a column, by name; those of nested records below the record's name."""

_WIDTH: Final[Mapping[type[DataType], int]] = {
    ByteType: 8,
    ShortType: 16,
    IntegerType: 32,
    LongType: 64,
}
_EPOCH: Final = datetime(1970, 1, 1, tzinfo=UTC)
_MOMENT: Final = re.compile(
    r"(\d{4})-(\d\d)-(\d\d)[Tt ](\d\d):(\d\d):(\d\d)(?:\.(\d+))?([Zz]|[+-]\d\d:\d\d)", re.ASCII
)


class Misfit(Exception):
    """A value that its column cannot take; the text says where and why."""


def parse(payload: bytes) -> object:
    """Return the one JSON value in a payload, or raise :class:`Misfit`.

    Stricter than the standard library's default: a member that occurs twice, NaN and infinite
    numbers are refused, because no reading of them is the right one.
    """
    try:
        return json.loads(
            payload.decode("utf-8"), object_pairs_hook=_once, parse_constant=_no_constant
        )
    except UnicodeDecodeError as error:
        raise Misfit(f"not UTF-8 at byte {error.start}") from None
    except json.JSONDecodeError as error:
        place = f"line {error.lineno}, column {error.colno}"
        raise Misfit(f"not JSON: {error.msg} at {place}") from None
    except RecursionError:
        raise Misfit("nested too deeply") from None
    except ValueError as error:
        raise Misfit(f"not JSON that can be kept: {error}") from None


def to_json(value: object) -> str:
    """Return JSON text of a parsed value, on one line, readable where it is valid Unicode."""
    text = json.dumps(value, ensure_ascii=False, separators=(",", ":"))
    try:
        text.encode()
    except UnicodeEncodeError:  # half of a surrogate pair, which only an escape can carry
        text = json.dumps(value, separators=(",", ":"))
    return text


def converter(kind: DataType, *, lenient: bool = False) -> Converter:
    """Return the function that converts values for a column of this type.

    ``lenient`` lets text columns take any value as JSON text, as Spark's ``from_json`` does.
    Raises :class:`~js_spark.errors.SchemaError` for types that JSON has no value for.
    """
    return _Compiler(lenient).compile(kind, "the message")


class _Compiler:
    def __init__(self, lenient: bool) -> None:
        self._lenient = lenient

    def compile(self, kind: DataType, where: str) -> Converter:
        match kind:
            case StructType():
                return self._record(kind, where)
            case ArrayType():
                return self._array(kind, where)
            case MapType():
                return self._map(kind, where)
            case StringType():
                return _text_or_json(where) if self._lenient else _text(where)
            case ByteType() | ShortType() | IntegerType() | LongType():
                return _integer(where, _WIDTH[type(kind)])
            case DecimalType():
                return _decimal(where, kind)
            case DoubleType() | FloatType():
                return _number(where)
            case BooleanType():
                return _boolean(where)
            case TimestampType():
                return _moment(where)
            case DateType():
                return _date(where)
            case BinaryType():
                return _base64(where)
            case _:
                raise SchemaError(
                    f"{where}: JSON has no values for a column of type {kind.simpleString()}"
                )

    def _record(self, kind: StructType, where: str) -> Converter:
        members = [self._member(field, where) for field in kind.fields]
        known = frozenset(kind.names)

        def convert(value: object, extras: Extras) -> object:
            if value is None:
                return None
            if not isinstance(value, dict):
                raise _wrong(where, "an object", value)
            record = cast(dict[str, object], value)
            row = {name: take(record, extras) for name, take in members}
            if record.keys() - known:
                extras.update((name, record[name]) for name in record if name not in known)
            return row

        return convert

    def _member(
        self, field: StructField, where: str
    ) -> tuple[str, Callable[[dict[str, object], Extras], object]]:
        name, path = field.name, field.name if where == "the message" else f"{where}.{field.name}"
        convert = _json_text if fields.is_json(field) else self.compile(field.dataType, path)
        needed, nullable = fields.is_required(field), fields.is_nullable(field)
        nests = isinstance(field.dataType, StructType | ArrayType | MapType)

        def take(record: dict[str, object], extras: Extras) -> object:
            value = record.get(name)
            if value is None:
                if needed and (not nullable or name not in record):
                    state = "null" if name in record else "missing"
                    raise Misfit(f"{path}: required member is {state}")
                if name not in record or not fields.is_json(field):
                    return None
            if not nests:
                return convert(value, extras)
            inner: Extras = {}
            converted = convert(value, inner)
            if inner:
                extras[name] = inner
            return converted

        return name, take

    def _array(self, kind: ArrayType, where: str) -> Converter:
        convert = self.compile(kind.elementType, f"{where}[]")

        def convert_all(value: object, extras: Extras) -> object:
            if value is None:
                return None
            if not isinstance(value, list):
                raise _wrong(where, "an array", value)
            return [
                _nested(convert, each, extras, str(index))
                for index, each in enumerate(cast(list[object], value))
            ]

        return convert_all

    def _map(self, kind: MapType, where: str) -> Converter:
        if not isinstance(kind.keyType, StringType):
            raise SchemaError(f"{where}: the keys of a map from JSON are text")
        convert = self.compile(kind.valueType, f"{where}.*")

        def convert_all(value: object, extras: Extras) -> object:
            if value is None:
                return None
            if not isinstance(value, dict):
                raise _wrong(where, "an object", value)
            pairs = cast(dict[str, object], value).items()
            return [
                (_unicode(key, where), _nested(convert, each, extras, key)) for key, each in pairs
            ]

        return convert_all


def _nested(convert: Converter, value: object, extras: Extras, key: str) -> object:
    inner: Extras = {}
    converted = convert(value, inner)
    if inner:
        extras[key] = inner
    return converted


def _json_text(value: object, extras: Extras) -> object:
    return to_json(value)


def _text(where: str) -> Converter:
    def convert(value: object, extras: Extras) -> object:
        if value is None:
            return None
        if not isinstance(value, str):
            raise _wrong(where, "text", value)
        return _unicode(value, where)

    return convert


def _text_or_json(where: str) -> Converter:
    def convert(value: object, extras: Extras) -> object:
        if value is None:
            return None
        return _unicode(value, where) if isinstance(value, str) else to_json(value)

    return convert


def _integer(where: str, bits: int) -> Converter:
    lowest, highest = -(2 ** (bits - 1)), 2 ** (bits - 1) - 1

    def convert(value: object, extras: Extras) -> object:
        if value is None:
            return None
        if isinstance(value, float) and value.is_integer():
            value = int(value)  # 1.0 and 1e3 are integers in JSON Schema
        if not isinstance(value, int) or isinstance(value, bool):
            raise _wrong(where, "an integer", value)
        if not lowest <= value <= highest:
            raise Misfit(f"{where}: {_short(value)} does not fit {bits} bits with sign")
        return value

    return convert


def _decimal(where: str, kind: DecimalType) -> Converter:
    limit = Decimal(10) ** (kind.precision - kind.scale)
    step = Decimal(1).scaleb(-kind.scale)

    def convert(value: object, extras: Extras) -> object:
        if value is None:
            return None
        if not isinstance(value, int | float) or isinstance(value, bool):
            raise _wrong(where, "a number", value)
        number = Decimal(repr(value))
        if abs(number) >= limit or number % step:
            raise Misfit(f"{where}: {_short(value)} does not fit {kind.simpleString()}")
        return number.quantize(step)

    return convert


def _number(where: str) -> Converter:
    def convert(value: object, extras: Extras) -> object:
        if value is None:
            return None
        if not isinstance(value, int | float) or isinstance(value, bool):
            raise _wrong(where, "a number", value)
        try:
            number = float(value)
        except OverflowError:
            number = float("inf")
        if number in (float("inf"), float("-inf")):
            raise Misfit(f"{where}: {_short(value)} does not fit a double")
        return number

    return convert


def _boolean(where: str) -> Converter:
    def convert(value: object, extras: Extras) -> object:
        if value is None or isinstance(value, bool):
            return value
        raise _wrong(where, "true or false", value)

    return convert


def _moment(where: str) -> Converter:
    def convert(value: object, extras: Extras) -> object:
        if value is None:
            return None
        found = _MOMENT.fullmatch(value) if isinstance(value, str) else None
        if found is None:
            raise _wrong(where, "a moment such as 2006-01-02T15:04:05Z", value)
        return _microseconds(found, where, value)

    return convert


def _microseconds(found: re.Match[str], where: str, value: object) -> int:
    """Return microseconds since 1970; digits below a microsecond are cut, as Spark has no room."""
    year, month, day, hour, minute, second, digits, zone = found.groups()
    try:
        moment = datetime(int(year), int(month), int(day), int(hour), int(minute), int(second))
        offset = _zone(zone)
    except ValueError as error:
        raise Misfit(f"{where}: {_short(value)} is no moment: {error}") from None
    since = moment.replace(tzinfo=UTC) - _EPOCH - offset
    return since // timedelta(microseconds=1) + int((digits or "")[:6].ljust(6, "0"))


def _zone(text: str) -> timedelta:
    if text in "Zz":
        return timedelta(0)
    offset = timedelta(hours=int(text[1:3]), minutes=int(text[4:6]))
    timezone(offset)  # refuses a day and more
    return offset if text[0] == "+" else -offset


def _date(where: str) -> Converter:
    def convert(value: object, extras: Extras) -> object:
        if value is None:
            return None
        try:
            if isinstance(value, str) and len(value) == len("2006-01-02"):
                return date.fromisoformat(value)
        except ValueError:
            pass  # told below, with the other misfits
        raise _wrong(where, "a day such as 2006-01-02", value)

    return convert


def _base64(where: str) -> Converter:
    def convert(value: object, extras: Extras) -> object:
        if value is None:
            return None
        try:
            if isinstance(value, str):
                return base64.b64decode(value, validate=True)
        except (binascii.Error, ValueError):
            pass  # told below, with the other misfits
        raise _wrong(where, "bytes in base64", value)

    return convert


def _once(pairs: list[tuple[str, object]]) -> dict[str, object]:
    found = dict(pairs)
    if len(found) != len(pairs):
        names = [name for name, _ in pairs]
        twice = next(name for name in names if names.count(name) > 1)
        raise ValueError(f"member {twice!r} occurs twice")
    return found


def _no_constant(name: str) -> object:
    raise ValueError(f"{name} is no JSON number")


def _unicode(text: str, where: str) -> str:
    if not text.isascii():
        try:
            text.encode()
        except UnicodeEncodeError:
            raise Misfit(f"{where}: holds half of a surrogate pair") from None
    return text


def _wrong(where: str, wanted: str, value: object) -> Misfit:
    return Misfit(f"{where}: expected {wanted}, got {_short(value)}")


def _short(value: object) -> str:
    match value:
        case dict():
            return "an object"
        case list():
            return "an array"
        case bool():
            return "true" if value else "false"
        case str():
            return f"text {value[:40]!r}" + ("…" if len(value) > 40 else "")
        case int() if value.bit_length() > 128:
            return "a number of more than 128 bits"
        case _:
            return repr(value)

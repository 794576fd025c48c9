"""Converters of single values to text, number and time columns.

A converter raises `ColumnMismatch` with a reason for a value that does not fit the column. It
returns `None` for null.
"""

from __future__ import annotations

import base64
import binascii
import re
import struct
from datetime import UTC, date, datetime, timedelta, timezone
from decimal import Context, Decimal, Inexact, InvalidOperation
from typing import Final

import pyarrow as pa

from twinstream.spark.decode.column_mismatch import (
    ColumnMismatch,
    Converter,
    Extras,
    shown,
    unicode_text,
    wrong_kind,
)
from twinstream.spark.decode.digits import keeps_digits
from twinstream.spark.decode.json_text import to_json
from twinstream.spark.decode.sql_names import sql_name

__all__ = [
    "FIRST_DAY",
    "FIRST_MOMENT",
    "LAST_DAY",
    "LAST_MOMENT",
    "MOMENT_PATTERN",
    "base64_bytes",
    "boolean",
    "day",
    "decimal",
    "integer",
    "json_column",
    "moment",
    "number",
    "text",
    "text_or_json",
]

# The maximum precision of a decimal in Spark. No column accepts a number with more digits.
_MOST_DIGITS: Final = 38

# A context that raises an error if a number would be rounded or has more than `_MOST_DIGITS`
# digits.
_EXACT: Final = Context(prec=_MOST_DIGITS, traps=[Inexact, InvalidOperation])

# With "<", packing a number that is too large for a float raises an error. The native format would
# pack infinity.
_SINGLE: Final = struct.Struct("<f")

_EPOCH: Final = datetime(1970, 1, 1, tzinfo=UTC)
# The timestamps with a zone that Arrow accepts, and the same timestamps with lower-case letters.
# Arrow or this converter parses a message, depending on the other messages of its page. Both must
# accept the same timestamps, so that this choice does not change the result. Like Arrow, the
# converter accepts a timestamp in the year 0 if it is in the year 1 in UTC. The seconds, the
# minutes of the time and the minutes of the zone are optional.
_MOMENT: Final = re.compile(
    r"(\d{4})-(\d\d)-(\d\d)[Tt ](\d\d)(?::(\d\d)(?::(\d\d)(?:\.(\d+))?)?)?"
    r"([Zz]|[+-]\d\d(?::?\d\d)?)",
    re.ASCII,
)

_MICROSECOND: Final = timedelta(microseconds=1)

FIRST_MOMENT: Final = (datetime.min.replace(tzinfo=UTC) - _EPOCH) // _MICROSECOND
LAST_MOMENT: Final = (datetime.max.replace(tzinfo=UTC) - _EPOCH) // _MICROSECOND
"""The bounds of timestamps, in microseconds since 1970: the years 1 to 9999. Python and many other
readers of tables support no other years."""

FIRST_DAY: Final = (date.min - _EPOCH.date()).days
LAST_DAY: Final = (date.max - _EPOCH.date()).days
"""The bounds of dates, in days since 1970: the years 1 to 9999."""

MOMENT_PATTERN: Final = f"^(?:{_MOMENT.pattern})$"

_DAY: Final = re.compile(r"\d{4}-\d\d-\d\d", re.ASCII)

_CALENDAR: Final = 400
# The Gregorian calendar repeats after `_CALENDAR` years, which have `_CALENDAR_DAYS`. Python's
# calendar has no year 0. So a timestamp in the year 0 is computed in the year 400, and then
# `_CALENDAR_DAYS` are subtracted.
_CALENDAR_DAYS: Final = timedelta(days=146_097)


def json_column(value: object, extras: Extras) -> object:
    """Return the JSON text of any value."""
    return to_json(value)


def text(where: str) -> Converter:
    """Return a converter for text columns."""

    def convert(value: object, extras: Extras) -> object:
        if value is None:
            return None
        if not isinstance(value, str):
            raise wrong_kind(where, "text", value)
        return unicode_text(value, where)

    return convert


def text_or_json(where: str) -> Converter:
    """Return a converter for text columns that converts other values to JSON text."""

    def convert(value: object, extras: Extras) -> object:
        if value is None:
            return None
        return unicode_text(value, where) if isinstance(value, str) else to_json(value)

    return convert


def integer(where: str, bits: int) -> Converter:
    """Return a converter for columns of signed integers with `bits` bits.

    A number such as 1.0 or 1e3 also counts as a whole number.
    """
    lowest, highest = -(2 ** (bits - 1)), 2 ** (bits - 1) - 1

    def convert(value: object, extras: Extras) -> object:
        if value is None:
            return None
        if isinstance(value, Decimal) and value.adjusted() >= _MOST_DIGITS:
            # A conversion to `int` is not possible: the digits of 1e999999999 would fill the
            # memory.
            raise _out_of_range(where, value, bits)
        if isinstance(value, float | Decimal) and _is_whole(value):
            value = int(value)  # in JSON Schema, 1.0 and 1e3 are integers
        if not isinstance(value, int) or isinstance(value, bool):
            raise wrong_kind(where, "an integer", value)
        if not lowest <= value <= highest:
            raise _out_of_range(where, value, bits)
        return value

    return convert


def _is_whole(value: float | Decimal) -> bool:
    if isinstance(value, Decimal):
        return value == value.to_integral_value()
    return float(value).is_integer()


def _out_of_range(where: str, value: object, bits: int) -> ColumnMismatch:
    return ColumnMismatch(f"{where}: {shown(value)} does not fit a signed {bits}-bit integer")


def decimal(where: str, kind: pa.Decimal128Type) -> Converter:
    """Return a converter for decimal columns. It never rounds a number."""
    # The smallest number with too many digits before the point.
    limit = Decimal(10) ** (kind.precision - kind.scale)
    step = Decimal(1).scaleb(-kind.scale)

    def convert(value: object, extras: Extras) -> object:
        if value is None:
            return None
        if not isinstance(value, int | float | Decimal) or isinstance(value, bool):
            raise wrong_kind(where, "a number", value)
        number = Decimal(repr(value)) if isinstance(value, float) else Decimal(value)
        try:
            fitted = number.quantize(step, context=_EXACT)
        except (Inexact, InvalidOperation):
            fitted = limit  # the check below raises the error
        if abs(fitted) >= limit:
            raise ColumnMismatch(f"{where}: {shown(value)} does not fit {sql_name(kind)}")
        return fitted

    return convert


def number(where: str, *, single: bool = False, exact: bool = False) -> Converter:
    """Return a converter for columns of doubles, or of floats with `single`.

    With `exact`, a number does not fit if the conversion to a double changes it.
    """
    name = "a float" if single else "a double"

    def convert(value: object, extras: Extras) -> object:
        if value is None:
            return None
        if not isinstance(value, int | float | Decimal) or isinstance(value, bool):
            raise wrong_kind(where, "a number", value)
        try:
            number = float(value)
            if single:
                _SINGLE.pack(number)  # raises an error if a float cannot have the number
        except OverflowError:
            number = float("inf")
        if number in (float("inf"), float("-inf")):
            raise ColumnMismatch(f"{where}: {shown(value)} does not fit {name}")
        if exact and not isinstance(value, float) and not keeps_digits(value, number):
            raise ColumnMismatch(f"{where}: {shown(value)} has digits that {name} would lose")
        return number

    return convert


def boolean(where: str) -> Converter:
    """Return a converter for boolean columns."""

    def convert(value: object, extras: Extras) -> object:
        if value is None or isinstance(value, bool):
            return value
        raise wrong_kind(where, "true or false", value)

    return convert


def moment(where: str) -> Converter:
    """Return a converter from timestamps (RFC 3339) to microseconds since 1970."""

    def convert(value: object, extras: Extras) -> object:
        if value is None:
            return None
        match = _MOMENT.fullmatch(value) if isinstance(value, str) else None
        if match is None:
            raise wrong_kind(where, "a timestamp such as 2006-01-02T15:04:05Z", value)
        return _microseconds(match, where, value)

    return convert


def _microseconds(match: re.Match[str], where: str, value: object) -> int:
    """Return the microseconds since 1970. Nanoseconds are truncated, because Spark has none."""
    *numbers, digits, zone = match.groups()
    year, month, day, hour, minute, second = (int(each or 0) for each in numbers)
    try:
        moment = datetime(year or _CALENDAR, month, day, hour, minute, second, tzinfo=UTC)
        offset = _zone(zone)
    except ValueError as error:
        raise ColumnMismatch(f"{where}: {shown(value)} is not a timestamp: {error}") from None
    since = moment - _EPOCH - offset
    if not year:
        since -= _CALENDAR_DAYS
    found = since // _MICROSECOND + int((digits or "")[:6].ljust(6, "0"))
    if not FIRST_MOMENT <= found <= LAST_MOMENT:
        raise ColumnMismatch(f"{where}: {shown(value)} is not in the years 1 to 9999 of UTC")
    return found


def _zone(text: str) -> timedelta:
    if text in "Zz":
        return timedelta(0)
    offset = timedelta(hours=int(text[1:3]), minutes=int(text[-2:]) if len(text) > 3 else 0)
    timezone(offset)  # raises `ValueError` for an offset of a day or more
    return offset if text[0] == "+" else -offset


def day(where: str) -> Converter:
    """Return a converter from text such as `2006-01-02` to dates."""

    def convert(value: object, extras: Extras) -> object:
        if value is None:
            return None
        try:
            if isinstance(value, str) and _DAY.fullmatch(value):
                return date.fromisoformat(value)
        except ValueError:
            pass  # the error below is raised, as for other wrong values
        raise wrong_kind(where, "a date such as 2006-01-02", value)

    return convert


def base64_bytes(where: str) -> Converter:
    """Return a converter from base64 text to bytes."""

    def convert(value: object, extras: Extras) -> object:
        if value is None:
            return None
        try:
            if isinstance(value, str):
                return base64.b64decode(value, validate=True)
        except (binascii.Error, ValueError):
            pass  # the error below is raised, as for other wrong values
        raise wrong_kind(where, "bytes in base64", value)

    return convert

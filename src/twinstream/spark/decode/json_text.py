"""Parse JSON payloads, and write values as JSON text.

A number that a float would change is parsed as a `Decimal`, which keeps all its digits.
"""

from __future__ import annotations

import json
import secrets
from collections.abc import Callable, Sequence
from decimal import Decimal, InvalidOperation
from typing import Final, cast

import pyarrow as pa
import pyarrow.compute as pc

from twinstream.spark.decode.column_mismatch import ColumnMismatch

__all__ = ["parse", "to_json", "to_json_as_written", "to_json_each", "value_at", "values_of"]

_TEXT: Final = r'"[^"\\\x00-\x1f]*"'
_SCALAR: Final = (
    rf"(?:{_TEXT}|true|false|null"
    r"|0|-?[1-9][0-9]*(?:\.[0-9]+)?|-?0\.(?:[0-9]{1,6}|0{0,5}[1-9][0-9]*))"
)
# A text that `to_json` would return unchanged: a scalar, or an object whose values are scalars. It
# has no escapes and no spaces between values. It has no exponents, no number so small that
# `to_json` may write an exponent, and no -0, because `to_json` may drop the sign.
_AS_WRITTEN: Final = rf"^(?:{_SCALAR}|\{{(?:{_TEXT}:{_SCALAR}(?:,{_TEXT}:{_SCALAR})*)?\}})$"

# Python converts a whole number of up to this many digits with any setting, because it is the
# lowest limit that `sys.set_int_max_str_digits` accepts.
_FEW_DIGITS: Final = 640


def parse(payload: bytes) -> object:
    """Return the JSON value of a payload, or raise `ColumnMismatch`.

    This is stricter than the standard library's default. Duplicate members are refused because
    their meaning is ambiguous, and NaN and infinite numbers because they are not JSON.
    """
    try:
        text = payload.decode("utf-8")
        try:
            return _parsed(text, int)
        except json.JSONDecodeError:
            raise
        except ValueError:  # a whole number has more digits than Python converts by default
            return _parsed(text, _whole)
    except UnicodeDecodeError as error:
        raise ColumnMismatch(f"not UTF-8 at byte {error.start}") from None
    except json.JSONDecodeError as error:
        place = f"line {error.lineno}, column {error.colno}"
        raise ColumnMismatch(f"not JSON: {error.msg} at {place}") from None
    except RecursionError:
        raise ColumnMismatch("nested too deeply") from None


def _parsed(text: str, whole: Callable[[str], int | Decimal]) -> object:
    return json.loads(
        text,
        object_pairs_hook=_once,
        parse_constant=_no_constant,
        parse_float=_number,
        parse_int=whole,
    )


def value_at(text: str, place: int) -> tuple[object, int]:
    """Return the JSON value that begins at an offset in a text, and the offset of its end.

    Raises `ColumnMismatch`, `ValueError` or `RecursionError` for values that `parse` refuses,
    and `ValueError` for a whole number with more digits than Python converts by default.
    """
    found: tuple[object, int] = _LOOSE.raw_decode(text, place)
    value, end = found
    # A text has a colon for each name, and perhaps more colons inside strings. If it has as many
    # colons as the value has different names, no name occurs twice. Otherwise the slower decoder
    # checks the names.
    if text.count(":", place, end) != _size(value):
        return _VALUES.raw_decode(text, place)
    return found


def _size(value: object) -> int:
    return len(cast(dict[str, object], value)) if isinstance(value, dict) else 0


def values_of(texts: Sequence[str]) -> list[object]:
    """Return the value of each text. The texts must have no nested objects.

    Raises `ValueError` if a text is not one value, and otherwise errors as `value_at` does.
    """
    whole = f"[{','.join(texts)}]"
    values: list[object] = _LOOSE.decode(whole)
    names = sum([len(cast(dict[str, object], each)) for each in values if isinstance(each, dict)])
    if whole.count(":") != names:  # a name may occur twice; see `value_at`
        values = _VALUES.decode(whole)
    if len(values) != len(texts):
        raise ValueError("a text has more than one value")
    return values


def to_json(value: object) -> str:
    """Return the JSON text of a parsed value on one line.

    Characters other than ASCII are escaped only if the value is not valid Unicode. Raises
    `ColumnMismatch` if the value is nested too deeply or has a number that cannot be written.
    """
    try:
        text = _dumped(value, escaped=False)
        try:
            text.encode()
        except UnicodeEncodeError:  # a lone surrogate needs an escape
            text = _dumped(value, escaped=True)
    except RecursionError:
        raise ColumnMismatch("nested too deeply") from None
    except ValueError:
        raise ColumnMismatch("has a number whose exponent is out of range") from None
    return text


def to_json_each(values: Sequence[object]) -> list[str]:
    """Return the text of `to_json` for each value. For many values this is much faster.

    Raises `ColumnMismatch` as `to_json` does.
    """
    separator = secrets.token_hex(16)  # random, so that no value contains it
    separated: list[object] = [separator] * (2 * len(values) + 1)
    separated[1::2] = values
    try:
        text = _READABLE.encode(separated)
        text.encode()
    except (TypeError, ValueError, RecursionError):
        return [to_json(value) for value in values]
    edge = len(separator) + len('["",')
    return text[edge:-edge].split(f',"{separator}",') if values else []


def to_json_as_written(texts: Sequence[str], values: Sequence[object]) -> pa.Array:
    """Return the same texts as `to_json_each` for values that were parsed from `texts`.

    Most texts already have the form that `to_json` writes, and are returned unchanged. Raises
    `ColumnMismatch` as `to_json` does.
    """
    written = pa.array(texts, pa.string())
    usual = pc.match_substring_regex(written, _AS_WRITTEN)
    if pc.all(usual).as_py():
        return written
    found = [*texts]
    for at in pc.indices_nonzero(pc.invert(usual)).to_pylist():
        found[at] = to_json(values[at])
    return pa.array(found, pa.string())


def _dumped(value: object, *, escaped: bool) -> str:
    try:
        return (_ESCAPED if escaped else _READABLE).encode(value)
    except TypeError:  # the standard library cannot write a `Decimal`
        return _written(value, escaped=escaped)


def _written(value: object, *, escaped: bool) -> str:
    """Return the JSON text of a value that contains a `Decimal`, whose digits are kept."""
    if isinstance(value, Decimal):
        return str(value)
    if isinstance(value, dict):
        members = cast(dict[str, object], value).items()
        texts = [
            f"{_dumped(name, escaped=escaped)}:{_written(each, escaped=escaped)}"
            for name, each in members
        ]
        return "{" + ",".join(texts) + "}"
    if isinstance(value, list):
        items = cast(list[object], value)
        return "[" + ",".join(_written(each, escaped=escaped) for each in items) + "]"
    return _dumped(value, escaped=escaped)


def _once(pairs: list[tuple[str, object]]) -> dict[str, object]:
    found = dict(pairs)
    if len(found) != len(pairs):
        names = [name for name, _ in pairs]
        twice = next(name for name in names if names.count(name) > 1)
        raise ColumnMismatch(f"ambiguous JSON: member {twice!r} occurs twice")
    return found


def _no_constant(name: str) -> object:
    raise ColumnMismatch(f"not JSON: {name} is not a JSON number")


def _whole(text: str) -> int | Decimal:
    return int(text) if len(text) <= _FEW_DIGITS else Decimal(text)


def _number(text: str) -> float | Decimal:
    number = float(text)
    if repr(number) == text:
        return number
    try:
        return Decimal(text)
    except InvalidOperation:  # the exponent has more than 18 digits
        return number


_VALUES: Final = json.JSONDecoder(
    object_pairs_hook=_once, parse_constant=_no_constant, parse_float=_number
)
_LOOSE: Final = json.JSONDecoder(parse_constant=_no_constant, parse_float=_number)
_READABLE: Final = json.JSONEncoder(ensure_ascii=False, separators=(",", ":"), allow_nan=False)
_ESCAPED: Final = json.JSONEncoder(ensure_ascii=True, separators=(",", ":"), allow_nan=False)

"""Text and JSON: reading the one document in a payload, and writing a value back as text.

A number that a float would change comes as a `Decimal`, which keeps all its digits.
"""

from __future__ import annotations

import json
import secrets
from collections.abc import Callable, Sequence
from decimal import Decimal, InvalidOperation
from typing import Final, cast

from twinstream.spark.decode.misfit import Misfit

__all__ = ["parse", "to_json", "to_json_each", "value_at", "values_of"]

#: Digits of a whole number that is surely converted: the least limit that Python can be given.
_FEW_DIGITS: Final = 640


def parse(payload: bytes) -> object:
    """Return the one JSON value in a payload, or raise :class:`Misfit`.

    Stricter than the standard library's default: a member that occurs twice, NaN and infinite
    numbers are refused, because no reading of them is the right one.
    """
    try:
        text = payload.decode("utf-8")
        try:
            return _parsed(text, int)
        except json.JSONDecodeError:
            raise
        except ValueError:  # a whole number of more digits than Python converts by itself
            return _parsed(text, _whole)
    except UnicodeDecodeError as error:
        raise Misfit(f"not UTF-8 at byte {error.start}") from None
    except json.JSONDecodeError as error:
        place = f"line {error.lineno}, column {error.colno}"
        raise Misfit(f"not JSON: {error.msg} at {place}") from None
    except RecursionError:
        raise Misfit("nested too deeply") from None


def _parsed(text: str, whole: Callable[[str], int | Decimal]) -> object:
    return json.loads(
        text,
        object_pairs_hook=_once,
        parse_constant=_no_constant,
        parse_float=_number,
        parse_int=whole,
    )


def value_at(text: str, place: int) -> tuple[object, int]:
    """Return the JSON value that begins at a place in a text, and where it ends.

    Raises :class:`Misfit` or an error of the standard library for what `parse` refuses, and for a
    whole number of more digits than Python converts by itself.
    """
    found: tuple[object, int] = _LOOSE.raw_decode(text, place)
    value, end = found
    # No more colons than names that differ: then no name is there twice.
    if text.count(":", place, end) != _size(value):
        return _VALUES.raw_decode(text, place)
    return found


def _size(value: object) -> int:
    return len(cast(dict[str, object], value)) if isinstance(value, dict) else 0


def values_of(texts: Sequence[str]) -> list[object]:
    """Return the values of texts that hold no object within another; raises as `value_at` does."""
    whole = f"[{','.join(texts)}]"
    values: list[object] = _LOOSE.decode(whole)
    names = sum(map(_size, values))
    if whole.count(":") != names:  # see value_at
        values = _VALUES.decode(whole)
    if len(values) != len(texts):
        raise ValueError("a text that holds more than a value")
    return values


def to_json(value: object) -> str:
    """Return JSON text of a parsed value, on one line, readable where it is valid Unicode.

    Raises :class:`Misfit` for what has no such text.
    """
    try:
        text = _dumped(value, escaped=False)
        try:
            text.encode()
        except UnicodeEncodeError:  # half of a surrogate pair, which only an escape can carry
            text = _dumped(value, escaped=True)
    except RecursionError:
        raise Misfit("nested too deeply") from None
    except ValueError:
        raise Misfit("holds a number beyond all bounds") from None
    return text


def to_json_each(values: Sequence[object]) -> list[str]:
    """Return JSON text of each value as `to_json` does, much faster for many.

    Raises :class:`Misfit` if one has none.
    """
    mark = secrets.token_hex(16)  # which no value holds, because it is younger
    marked: list[object] = [mark] * (2 * len(values) + 1)
    marked[1::2] = values
    try:
        text = _READABLE.encode(marked)
        text.encode()
    except (TypeError, ValueError, RecursionError):
        return [to_json(value) for value in values]
    edge = len(mark) + len('["",')
    return text[edge:-edge].split(f',"{mark}",') if values else []


def _dumped(value: object, *, escaped: bool) -> str:
    try:
        return (_ESCAPED if escaped else _READABLE).encode(value)
    except TypeError:  # a decimal, which the standard library has no text for
        return _written(value, escaped=escaped)


def _written(value: object, *, escaped: bool) -> str:
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
        raise Misfit(f"not JSON that can be kept: member {twice!r} occurs twice")
    return found


def _no_constant(name: str) -> object:
    raise Misfit(f"not JSON that can be kept: {name} is no JSON number")


def _whole(text: str) -> int | Decimal:
    return int(text) if len(text) <= _FEW_DIGITS else Decimal(text)


def _number(text: str) -> float | Decimal:
    number = float(text)
    if repr(number) == text:
        return number
    try:
        return Decimal(text)
    except InvalidOperation:  # an exponent of more than 18 digits
        return number


_VALUES: Final = json.JSONDecoder(
    object_pairs_hook=_once, parse_constant=_no_constant, parse_float=_number
)
_LOOSE: Final = json.JSONDecoder(parse_constant=_no_constant, parse_float=_number)
_READABLE: Final = json.JSONEncoder(ensure_ascii=False, separators=(",", ":"), allow_nan=False)
_ESCAPED: Final = json.JSONEncoder(ensure_ascii=True, separators=(",", ":"), allow_nan=False)

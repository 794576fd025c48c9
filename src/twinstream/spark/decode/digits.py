"""Find numbers with more digits than a double can represent.

Arrow's JSON reader silently rounds a number to the nearest double. So this module searches the text
for long numbers in columns that must not be rounded. Most blocks have no such numbers. For these
blocks, Arrow searches the bytes once for each pattern, and Python searches nothing.
"""

from __future__ import annotations

import json
import re
from bisect import bisect_right
from collections.abc import Collection
from decimal import Context, Decimal, InvalidOperation
from itertools import accumulate
from typing import Final

import pyarrow as pa
import pyarrow.compute as pc

from twinstream.spark.decode import fields

__all__ = ["LongNumbers", "exact_names", "keeps_digits"]

_BLANK: Final = r"[ \t\r\n]*"
# A double represents every number of up to 15 digits, unless the number is close to zero. So this
# matches at least 16 consecutive characters that are digits or the point, or a number with an
# exponent of -100 or less.
_LONG: Final = r"(?:[0-9.]{16}|[0-9.]{0,15}[eE]-[0-9]{3})"
# The value of a member: a long number, or an array with a long number. This pattern may match too
# much. Arrow searches for it first, because Arrow searches much faster than Python.
_ROUGHLY: Final = rf'{_BLANK}:{_BLANK}(?:-?|\[[^"}}]*){_LONG}'
# The part of an array before a long number: short numbers, and the characters between numbers.
_SHORT: Final = r"(?:[-+,nul\[\] \t\r\n]|[0-9.]{1,15}+(?![0-9.])(?:[eE](?!-[0-9]{3})[-+0-9]++)?+)*+"
_VALUE: Final = rf"{_BLANK}+:{_BLANK}+((?:-?+|\[{_SHORT}){_LONG}[-+0-9.eE,nul\[\] \t\r\n]*+)"

# The end of a name that contains an escape. Any of the searched names can be written in this way.
_ESCAPED: Final = r'\\.(?:[^"\\]|\\.)*"'
_NUMBER: Final = re.compile(r"-?[0-9]+(?:\.[0-9]+)?(?:[eE][-+]?[0-9]+)?")


def keeps_digits(written: int | Decimal, number: float) -> bool:
    """Return whether a double keeps the digits of a number.

    `written` is the number in JSON, and `number` is the double. They count as equal if
    `number`, rounded to as many digits as `written` has, equals `written`.
    """
    exact = Decimal(number)
    digits = "".join(map(str, Decimal(written).as_tuple().digits)).strip("0")
    return exact == written or Context(prec=len(digits) or 1).plus(exact) == written


def exact_names(kind: pa.DataType) -> frozenset[str]:
    """Return the names of members, at all depths, whose numbers must not be rounded."""
    match kind:
        case pa.StructType():
            own = (each.name for each in kind if fields.is_exact(each))
            return frozenset(own).union(*(exact_names(each.type) for each in kind))
        case pa.ListType():
            return exact_names(kind.value_type)
        case _:
            return frozenset()


class LongNumbers:
    """A search for messages that have, in one of the named members, a number that a double changes.

    Numbers in arrays are searched too.
    """

    def __init__(self, names: Collection[str]) -> None:
        texts = [json.dumps(name, ensure_ascii=False) for name in sorted(names)]
        either = f"(?:{'|'.join(map(re.escape, texts))})"
        self._names: Final = [either, _ESCAPED] if names else []

    def rows(self, payloads: pa.Array, lines: pa.Buffer) -> list[int]:
        """Return the positions of messages with a number that a double changes.

        `lines` is the text of all payloads, one per line.
        """
        places = [
            place
            for name in self._names
            if _has(lines, name + _ROUGHLY)
            for place in _changed(re.compile((name + _VALUE).encode(), re.DOTALL), lines)
        ]
        if not places:
            return []
        sizes: list[int] = pc.binary_length(payloads).to_pylist()
        starts = list(accumulate((size + 1 for size in sizes), initial=0))
        return sorted({bisect_right(starts, place) - 1 for place in places})


def _has(lines: pa.Buffer, pattern: str) -> bool:
    """Return whether the pattern matches anywhere in the text."""
    ends = pa.py_buffer((0).to_bytes(8, "little") + lines.size.to_bytes(8, "little"))
    whole = pa.Array.from_buffers(pa.large_binary(), 1, [None, ends, lines])
    return bool(pc.match_substring_regex(whole, pattern)[0].as_py())


def _changed(pattern: re.Pattern[bytes], lines: pa.Buffer) -> list[int]:
    """Return the offsets of matches with a number that a double would change."""
    texts: list[bytes] = pattern.findall(lines)
    numbers = _NUMBER.findall(b",".join(texts).decode())
    pairs = zip(numbers, map(repr, map(float, numbers)), strict=True)
    changed = {written for written, number in pairs if written != number and _changes(written)}
    if not changed:
        return []
    return [
        found.start()
        for found in pattern.finditer(lines)
        if not changed.isdisjoint(_NUMBER.findall(found[1].decode()))
    ]


def _changes(written: str) -> bool:
    try:
        return not keeps_digits(Decimal(written), float(written))
    except (InvalidOperation, OverflowError):  # the exponent is out of range
        return True

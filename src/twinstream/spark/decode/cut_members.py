"""Cut members out of JSON text, so that Arrow's reader sees a number in the place of each.

A member that the reader cannot build (a map, free-form JSON, a decimal, a member without a column)
is read by Python, alone, and a number takes its place in the text. Numbers begin at random and go
up by one. So the reader's column of numbers proves afterwards that each was cut as a member of the
message itself, and not of another object within it, and that nothing else stands in the column.
"""

from __future__ import annotations

import re
import secrets
from collections.abc import Collection, Sequence
from itertools import accumulate
from typing import Final

import pyarrow as pa
import pyarrow.compute as pc
from attrs import field, frozen

from twinstream.spark.decode.json_text import value_at, values_of
from twinstream.spark.decode.misfit import Misfit
from twinstream.spark.decode.refusal import Refused

__all__ = ["CutMember", "Cutter", "can_cut"]

_NAME: Final = re.compile(r"\w[\w .$@/-]*")
_BLANK: Final = r"[ \t\r\n]*"
#: Texts without escapes, objects without brackets inside, and other scalars. Of many that are
#: joined to one array, only the commas between them can divide its items: so where there are as
#: many items as texts, each text is one value.
_SIMPLE: Final = (
    r'"[^"\\\n]*"|\{[^][{}\\]*\}'
    r"|(?:-?[0-9]+(?:\.[0-9]+)?|true|false|null)(?=[ \t\r\n,}])"
)
_OPEN: Final = frozenset("{,")
_SPACE: Final = " \t\r\n"


def can_cut(name: str) -> bool:
    """Tell whether members of this name can be found in text.

    The first character is none that may follow a text in JSON: so ``{"name"`` and ``,"name"``
    cannot be the end of one.
    """
    return bool(_NAME.fullmatch(name))


@frozen
class CutMember:
    """The values of one name in the order of the text, and where each begins."""

    first: int
    values: list[object] = field(factory=list[object])
    starts: list[int] = field(factory=list[int])

    def rows(self, numbers: pa.Array, text: str) -> Sequence[int]:
        """Return the row of each value; raise `Refused` if a number is astray."""
        size = len(self.values)
        expected = pa.array(range(self.first, self.first + size), pa.int64())
        if not numbers.drop_null().equals(expected):
            raise Refused(self._astray(numbers, text))
        return range(size) if not numbers.null_count else _valid_rows(numbers)

    def _astray(self, numbers: pa.Array, text: str) -> list[int]:
        """Return the messages whose values are not in the column, and those of other numbers."""
        found: list[int | None] = numbers.to_pylist()
        lost = set(range(self.first, self.first + len(self.values))).difference(found)
        rows = {text.count("\n", 0, self.starts[number - self.first]) for number in lost}
        rows.update(
            row
            for row, number in enumerate(found)
            if number is not None and not 0 <= number - self.first < len(self.values)
        )
        return sorted(row for row in rows if row < len(found))


def _valid_rows(numbers: pa.Array) -> list[int]:
    rows: list[int] = pc.indices_nonzero(numbers.is_valid()).to_pylist()
    return rows


class Cutter:
    """Cuts the members of the given names out of lines of JSON objects."""

    def __init__(self, names: Collection[str]) -> None:
        self._names: Final = tuple(names)
        either = "|".join(map(re.escape, sorted(names)))
        self._key: Final = re.compile(rf'"({either})"{_BLANK}:{_BLANK}')
        self._simple: Final = re.compile(rf'("(?:{either})"{_BLANK}:{_BLANK})({_SIMPLE})?')

    def cut(self, text: str) -> tuple[bytes, dict[str, CutMember]]:
        """Return the text with numbers, and what was cut.

        Raises :class:`~twinstream.spark.decode.refusal.Refused` for a value that Python cannot read.
        """
        members = {name: CutMember(secrets.randbits(60)) for name in self._names}
        pieces = self._in_bulk(text, members) or self._one_by_one(text, members)
        return "".join(pieces).encode(), members

    def _in_bulk(self, text: str, members: dict[str, CutMember]) -> list[str] | None:
        """Cut simple values at once; return nothing if one is not simple."""
        pieces = self._simple.split(text)
        befores, keys, raw = pieces[:-1:3], pieces[1::3], pieces[2::3]
        if None in raw or not all(before[-1:] in _OPEN for before in befores):
            return None
        try:
            values = values_of(raw)
        except (Misfit, ValueError, RecursionError):
            return None
        starts = list(accumulate(map(len, pieces)))[::3]
        if len(members) == 1:
            (member,) = members.values()
            member.values.extend(values)
            member.starts.extend(starts[: len(values)])
            pieces[2::3] = map(str, range(member.first, member.first + len(values)))
            return pieces
        for at, (key, value) in enumerate(zip(keys, values, strict=True)):
            member = members[key[1 : key.rindex('"')]]
            pieces[3 * at + 2] = str(member.first + len(member.values))
            member.values.append(value)
            member.starts.append(starts[at])
        return pieces

    def _one_by_one(self, text: str, members: dict[str, CutMember]) -> list[str]:
        pieces: list[str] = []
        add, search, end = pieces.append, self._key.search, 0
        match = search(text)
        while match:
            start, place = match.span()
            if text[start - 1 : start] in _OPEN or _is_key(text, start):
                member = members[match[1]]
                add(text[end:place])
                add(str(member.first + len(member.values)))
                try:
                    value, end = value_at(text, place)
                except (Misfit, ValueError, StopIteration, RecursionError):
                    raise Refused([text.count("\n", 0, start)]) from None
                member.values.append(value)
                member.starts.append(start)
                place = end
            match = search(text, place)
        add(text[end:])
        return pieces


def _is_key(text: str, start: int) -> bool:
    """Tell whether the quote at this place opens the name of a member."""
    return text[max(0, start - 100) : start].rstrip(_SPACE)[-1:] in _OPEN

"""Cut the values of members out of JSON text and put numbers in their place for Arrow's reader.

The reader cannot parse some members: a map, free-form JSON, a decimal, or a member without a
column. Python parses the values of such members, and numbers replace the values in the text. The
numbers begin at a random value and increase by one. The reader parses the numbers as a column. If
the column has exactly the expected numbers, each value was cut from a member of the message itself
and not of a nested object, and no value was missed.
"""

from __future__ import annotations

import re
import secrets
from collections.abc import Callable, Collection, Mapping, Sequence
from itertools import accumulate
from typing import Final

import pyarrow as pa
import pyarrow.compute as pc

from twinstream.spark.decode.block_refused import BlockRefused
from twinstream.spark.decode.column_mismatch import ColumnMismatch
from twinstream.spark.decode.json_text import value_at, values_of

__all__ = ["CutMember", "Cutter", "NotSimple", "can_cut"]

_NAME: Final = re.compile(r"\w[\w .$@/-]*")
_BLANK: Final = r"[ \t\r\n]*"
# A simple value: a string without escapes, an object without brackets inside, or another scalar.
# If many such texts are joined to one JSON array, only the commas between them can separate its
# items. So if the array has as many items as there are texts, each text is one value.
_SIMPLE: Final = (
    r'"[^"\\\n]*"|\{[^][{}\\]*\}'
    r"|(?:-?[0-9]+(?:\.[0-9]+)?|true|false|null)(?=[ \t\r\n,}])"
)
# A name with an escape, such as `"\u0061":`, which the search for a name does not find.
_ESCAPED_NAME: Final = re.compile(rf'\\.(?:[^"\\\n]|\\.)*"{_BLANK}:')
_OPEN: Final = frozenset("{,")
_SPACE: Final = " \t\r\n"


def can_cut(name: str) -> bool:
    """Return whether a search in JSON text can find members of this name.

    The search takes `{"name` and `,"name` for the start of a member. If the quote were the end
    of a string, JSON would allow only a blank or one of `,:]}` after it. So the name must begin
    with another character.
    """
    return bool(_NAME.fullmatch(name))


class NotSimple(Exception):
    """Raised if a text that was cut as one value is not one value."""


class CutMember:
    """The values that were cut from members of one name, in the order of the text.

    In the text, numbers from `first` up replace the values. All names were cut together:
    `ranks` are the positions of these values among the cut values of all names, and `starts`
    returns the offsets at which the members of all names begin in the text. `texts` has the
    unparsed values; it is empty if the values were cut one by one.
    """

    def __init__(
        self,
        first: int,
        ranks: Sequence[int],
        starts: Callable[[], Sequence[int]],
        *,
        texts: Sequence[str] = (),
        values: list[object] | None = None,
    ) -> None:
        self.first: Final = first
        self.ranks: Final = ranks
        self.texts: Final = texts
        self._starts: Final = starts
        self._values = values

    def __len__(self) -> int:
        return len(self.ranks)

    @property
    def values(self) -> list[object]:
        """The parsed values. Raises `NotSimple` if a text is not one value."""
        if self._values is None:
            self._values = _parsed(self.texts)
        return self._values

    def values_at(self, places: Sequence[int]) -> list[object]:
        """Return the parsed values at some positions. Raises `NotSimple` as `values` does."""
        if self._values is None and len(places) < len(self):
            return _parsed([self.texts[at] for at in places])
        return [self.values[at] for at in places]

    def check(self) -> None:
        """Raise `NotSimple` if a text is not one value."""
        _ = self.values

    def rows(self, numbers: pa.Array, text: str) -> Sequence[int]:
        """Return the row of each value.

        `numbers` is the column that the reader parsed. Raises `BlockRefused` if it does not have
        exactly the expected numbers.
        """
        expected = pa.array(range(self.first, self.first + len(self)), pa.int64())
        if not numbers.drop_null().equals(expected):
            raise BlockRefused(self._unexpected_rows(numbers, text))
        if not numbers.null_count:
            return range(len(self))
        # Where the number is missing, the member may stand under a name with an escape, with null
        # as its value, which the reader does not distinguish from a missing member.
        if doubtful := [
            row for row in _rows_with_escaped_names(text) if numbers[row].as_py() is None
        ]:
            raise BlockRefused(doubtful)
        return _valid_rows(numbers)

    def _unexpected_rows(self, numbers: pa.Array, text: str) -> list[int]:
        """Return the rows with an unexpected number, and the rows whose number is missing."""
        found: list[int | None] = numbers.to_pylist()
        lost = set(range(self.first, self.first + len(self))).difference(found)
        starts = self._starts()
        rows = {text.count("\n", 0, starts[self.ranks[each - self.first]]) for each in lost}
        rows.update(
            row
            for row, number in enumerate(found)
            if number is not None and not 0 <= number - self.first < len(self)
        )
        return sorted(row for row in rows if row < len(found))


def _parsed(texts: Sequence[str]) -> list[object]:
    try:
        return values_of(texts)
    except (ColumnMismatch, ValueError, RecursionError):
        raise NotSimple from None


def _rows_with_escaped_names(text: str) -> list[int]:
    rows: list[int] = []
    row = counted = 0
    for match in _ESCAPED_NAME.finditer(text) if "\\" in text else ():
        row, counted = row + text.count("\n", counted, match.start()), match.start()
        rows.append(row)
    return sorted(set(rows))


def _valid_rows(numbers: pa.Array) -> list[int]:
    rows: list[int] = pc.indices_nonzero(numbers.is_valid()).to_pylist()
    return rows


class Cutter:
    """A cutter for members with the given names, in a text with one JSON object per line."""

    def __init__(self, names: Collection[str]) -> None:
        self._names: Final = tuple(names)
        either = "|".join(map(re.escape, sorted(names)))
        self._key: Final = re.compile(rf'"({either})"{_BLANK}:{_BLANK}')
        self._simple: Final = re.compile(rf'("(?:{either})"{_BLANK}:{_BLANK})({_SIMPLE})?')

    def cut(self, text: str, *, in_bulk: bool = True) -> tuple[bytes, dict[str, CutMember]]:
        """Return the text with numbers, and the members that were cut, by name.

        With `in_bulk`, if all values match the pattern of simple values, they are parsed when
        `CutMember.values` is read. If this raises `NotSimple`, the caller must call `cut` again
        without `in_bulk`. Raises `BlockRefused` for a value that Python cannot parse.
        """
        return (self._cut_all(text) if in_bulk else None) or self._cut_each(text)

    def _cut_all(self, text: str) -> tuple[bytes, dict[str, CutMember]] | None:
        """Cut all values without parsing them. Return `None` if a value is not simple."""
        pieces = self._simple.split(text)
        texts = pieces[2::3]
        are_simple = None not in texts
        # Any other character before a key may belong to a string in which the key was found.
        if not are_simple or not all(before[-1:] in _OPEN for before in pieces[:-1:3]):
            return None
        members: dict[str, CutMember] = {}
        numbered, numbers = pieces.copy(), [""] * len(texts)
        for name, ranks in self._ranks(pieces[1::3]).items():
            first = secrets.randbits(60)
            own = [texts[rank] for rank in ranks]
            members[name] = CutMember(first, ranks, lambda: _starts(pieces), texts=own)
            for rank, number in zip(ranks, range(first, first + len(ranks)), strict=True):
                numbers[rank] = str(number)
        numbered[2::3] = numbers
        return "".join(numbered).encode(), members

    def _ranks(self, keys: Sequence[str]) -> Mapping[str, Sequence[int]]:
        """Return the positions of each name among the keys that were found."""
        if len(self._names) == 1:
            return {self._names[0]: range(len(keys))}
        found: dict[str, list[int]] = {name: [] for name in self._names}
        ranks = {key: found[key[1 : key.rindex('"')]] for key in set(keys)}
        for rank, key in enumerate(keys):
            ranks[key].append(rank)
        return found

    def _cut_each(self, text: str) -> tuple[bytes, dict[str, CutMember]]:
        """Find, parse and cut one value after the other.

        Raises `BlockRefused` with the row of a value that Python cannot parse.
        """
        firsts = {name: secrets.randbits(60) for name in self._names}
        ranks: dict[str, list[int]] = {name: [] for name in self._names}
        values: dict[str, list[object]] = {name: [] for name in self._names}
        starts: list[int] = []
        pieces: list[str] = []
        add, search, copied = pieces.append, self._key.search, 0
        match = search(text)
        while match:
            start, place = match.span()
            # The key may also be found inside a string, where no member begins.
            if text[start - 1 : start] in _OPEN or _is_key(text, start):
                name = match[1]
                add(text[copied:place])
                add(str(firsts[name] + len(ranks[name])))
                try:
                    value, copied = value_at(text, place)
                except (ColumnMismatch, ValueError, StopIteration, RecursionError):
                    raise BlockRefused([text.count("\n", 0, start)]) from None
                values[name].append(value)
                ranks[name].append(len(starts))
                starts.append(start)
                place = copied
            match = search(text, place)
        add(text[copied:])
        members = {
            name: CutMember(firsts[name], ranks[name], lambda: starts, values=values[name])
            for name in self._names
        }
        return "".join(pieces).encode(), members


def _starts(pieces: Sequence[str]) -> list[int]:
    """Return the offset of each key in a text that is split into prefixes, keys and values."""
    return list(accumulate(map(len, pieces)))[:-1:3]


def _is_key(text: str, start: int) -> bool:
    """Return whether the quote at the offset `start` opens the name of a member."""
    return text[max(0, start - 100) : start].rstrip(_SPACE)[-1:] in _OPEN

"""Decode blocks of messages with Arrow's JSON reader, which decodes a whole block or fails."""

from __future__ import annotations

import json
import re
from collections.abc import Collection, Mapping, Sequence
from operator import itemgetter
from typing import Final

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.json as pj

from twinstream.spark.decode import fields
from twinstream.spark.decode.block_refused import BlockRefused
from twinstream.spark.decode.column_mismatch import ColumnMismatch, Extras
from twinstream.spark.decode.convert import Take, member_converter
from twinstream.spark.decode.cut_members import CutMember, Cutter, NotSimple
from twinstream.spark.decode.digits import LongNumbers, exact_names
from twinstream.spark.decode.json_text import to_json, to_json_as_written, to_json_each
from twinstream.spark.decode.shapes import Shape, parsed_type, shape_of
from twinstream.spark.decode.text_maps import TEXT_MAP, text_maps

__all__ = ["ArrowJson", "member_names"]

_ROW: Final = re.compile(r" in row (\d+)$")
_VALUE: Final = re.compile(r"couldn't parse:(.+)$", re.DOTALL)
_KIND: Final = re.compile(r"/([^/]+)\) changed from \w+ to (\w+) in row (\d+)$")
# Regular expressions for the first character of a value, by the name of the value's kind in Arrow's
# errors.
_BEGINS: Final = {
    "null": "n",
    "boolean": "[tf]",
    "number": r"[-\d]",
    "string": '"',
    "array": r"\[",
    "object": r"\{",
}

# With its type, because pyarrow takes half a millisecond to infer the type of a value.
_LINE_BREAK: Final = pa.scalar(b"\n", pa.binary())

# `_rows_of_unusual_size` considers a number of members usual if more than one in this many messages
# has that number of members.
_FEW: Final = 64


class ArrowJson:
    """A decoder for blocks of messages with Arrow's JSON reader.

    The members named in `cuts` are cut out of the text and converted by Python. A name may be a
    column of any type, or the name of members without a column, which become extras. With
    `strict`, a block is refused if it has any other member without a column. Without `strict`,
    such members are ignored.
    """

    def __init__(
        self,
        columns: Sequence[pa.Field],
        cuts: Collection[str] = (),
        *,
        lenient: bool = False,
        strict: bool = True,
        keep_extras: bool = True,
    ) -> None:
        """Prepare the decoder. A member that is cut out stays in the text as a number."""
        self._fields: Final = [*map(fields.bare_field, columns)]
        self._shapes: Final[dict[str, Shape]] = {
            f.name: shape_of(f) for f in columns if f.name not in cuts
        }
        self._takes: Final[dict[str, Take]] = {
            f.name: member_converter(f, lenient=lenient) for f in columns if f.name in cuts
        }
        self._keep_extras: Final = keep_extras
        self._columns: Final = columns
        self._risky_integers: Final = _risky_integers(pa.struct(columns))
        self._long_numbers: Final = LongNumbers(
            exact_names(pa.struct([f for f in columns if f.name not in cuts]))
        )
        self._cutter: Final = Cutter(cuts) if cuts else None
        parsed = [pa.field(f.name, parsed_type(f.type)) for f in columns if f.name not in cuts]
        self._parse: Final = pj.ParseOptions(
            explicit_schema=pa.schema([*parsed, *(pa.field(name, pa.int64()) for name in cuts)]),
            # "infer" is not safe: it creates a column for every unknown name, and a deeply nested
            # value crashes the process.
            unexpected_field_behavior="error" if strict else "ignore",
        )

    def decode(self, payloads: pa.Array) -> tuple[pa.Array, pa.Array]:
        """Return the rows as a struct array, and the JSON text of the extras of each row.

        Raises `BlockRefused` if the block has a message that must be decoded separately.
        """
        framed = pc.and_(pc.starts_with(payloads, b"{"), pc.ends_with(payloads, b"}"))
        if not pc.all(framed).as_py():
            raise BlockRefused(pc.indices_nonzero(pc.invert(framed)).to_pylist())
        lines = _lines(payloads)
        if changed := self._long_numbers.rows(payloads, lines):
            raise BlockRefused(changed)
        if self._cutter is None:
            _check_utf8(payloads, lines)
            table = self._read(lines, payloads)
            return self._rows(table, {}), pa.nulls(len(payloads), pa.string())
        text = _text(lines)
        try:
            return self._cut(text, payloads, in_bulk=True)
        except NotSimple:
            return self._cut(text, payloads, in_bulk=False)

    def _cut(self, text: str, payloads: pa.Array, *, in_bulk: bool) -> tuple[pa.Array, pa.Array]:
        """Cut members out of the text, and return the rows and the extras as `decode` does.

        Raises `NotSimple` if the caller must repeat the call without `in_bulk`.
        """
        assert self._cutter is not None
        cut, members = self._cutter.cut(text, in_bulk=in_bulk)
        try:
            table = self._read(pa.py_buffer(cut), payloads)
            return self._with_members(table, members, text)
        except BlockRefused:
            # A text that was cut wrongly may be the cause. Then `check` raises `NotSimple` instead.
            for member in members.values():
                member.check()
            raise

    def _read(self, lines: pa.Buffer, payloads: pa.Array) -> pa.Table:
        """Parse the text with one payload per line, and check that each payload is one row.

        Every payload must begin with `{` and end with `}`, so it gives at least one row. No
        value can extend into the next payload: the line break between two payloads is not valid
        inside a string, and does not separate members or items. So if there are as many rows as
        payloads, each payload is one row.
        """
        options = pj.ReadOptions(use_threads=False, block_size=lines.size + 1)
        try:
            table = pj.read_json(pa.BufferReader(lines), options, self._parse)
        except pa.ArrowInvalid as error:
            raise self._refusal(str(error), payloads) from None
        if table.num_rows != len(payloads):
            raise BlockRefused
        return table

    def _with_members(
        self, table: pa.Table, members: Mapping[str, CutMember], text: str
    ) -> tuple[pa.Array, pa.Array]:
        """Return the rows and the extras of a table from whose text `members` were cut out.

        Raises `BlockRefused` with the rows that must be decoded one by one.
        """
        collected = _Collected(table.num_rows)
        converted: dict[str, pa.Array] = {}
        for spec in self._columns:
            if spec.name in self._takes:
                member = members[spec.name]
                rows = member.rows(_column(table, spec.name), text)
                converted[spec.name] = self._convert(spec, rows, member, collected)
        if collected.refused:
            raise BlockRefused(collected.refused)
        records = self._rows(table, converted)
        others = {name: each for name, each in members.items() if name not in self._takes}
        for member in others.values():
            member.check()
        if not self._keep_extras:
            return records, pa.nulls(collected.size, pa.string())
        rows_of = {name: each.rows(_column(table, name), text) for name, each in others.items()}
        if len(others) == 1 and not collected.has_nested:
            # No row has several extras to combine, so Arrow writes the texts, which is faster.
            ((name, member),) = others.items()
            return records, _extras_of_one(name, member, rows_of[name], collected.size)
        for name, member in others.items():
            collected.add(member, name, rows_of[name])
        return records, collected.extras()

    def _convert(
        self, spec: pa.Field, rows: Sequence[int], member: CutMember, collected: _Collected
    ) -> pa.Array:
        """Return the column of a member that was cut out. `rows` has the row of each value.

        Add extras inside its values, and rows that must be decoded one by one, to `collected`.
        """
        take, name, kind = self._takes[spec.name], spec.name, fields.bare(spec.type)
        is_missing_somewhere = len(rows) < collected.size
        if is_missing_somewhere and not _accepts_missing(take):
            collected.refused.extend(set(range(collected.size)).difference(rows))
        if fields.is_json(spec) and fields.is_nullable(spec):
            try:
                return _placed(_texts(member), rows, collected.size)
            except ColumnMismatch:
                pass  # the code below finds the rows whose values have no JSON text
        # Arrow converts most maps of text. Python converts the values at the positions `pending`.
        maps, pending = None, [*range(len(rows))]
        if kind.equals(TEXT_MAP) and member.texts:
            maps, pending = text_maps(member.texts)
        values: list[object] = []
        inner: Extras = {}
        for at, value in zip(pending, member.values_at(pending), strict=True):
            try:
                values.append(take({name: value}, inner))
            except ColumnMismatch:
                values.append(None)
                collected.refused.append(rows[at])
            if inner:
                collected.nested(rows[at]).update(inner)
                inner = {}
        column = pa.array(values, kind)
        if maps is not None:
            column = _joined(maps, column, pending)
        return _placed(column, rows, collected.size)

    def _refusal(self, error: str, payloads: pa.Array) -> BlockRefused:
        """Return the exception for an error of Arrow's reader.

        The exception has the positions of messages that may have caused the error. They are found
        by the member, the row or the value that the text of the error names.
        """
        if kind := _KIND.search(error):
            key = re.escape(json.dumps(kind[1], ensure_ascii=False))
            rows = _rows_if_few(_matches(payloads, rf"{key}\s*:\s*{_BEGINS[kind[2]]}"))
            if int(kind[3]) in rows:
                return BlockRefused(rows)
        if row := _ROW.search(error):
            return BlockRefused([min(int(row[1]), len(payloads) - 1)], first=True)
        if value := _VALUE.search(error):
            rows = (
                _rows_if_few(_matches(payloads, self._risky_integers))
                if self._risky_integers
                else []
            )
            return BlockRefused(rows or _rows_if_few(pc.match_substring(payloads, ":" + value[1])))
        return BlockRefused(_rows_of_unusual_size(payloads))

    def _rows(self, table: pa.Table, made: Mapping[str, pa.Array]) -> pa.Array:
        columns = [
            made[name] if name in made else self._shapes[name](_column(table, name))
            for name in (field.name for field in self._fields)
        ]
        return pa.StructArray.from_arrays(columns, fields=self._fields)


class _Collected:
    """The extras of each row, and the rows (`refused`) that must be decoded one by one."""

    def __init__(self, size: int) -> None:
        self.size = size
        self.refused: list[int] = []
        self._extras: dict[int, Extras] = {}
        self._others: list[tuple[int, int, str, object]] = []

    @property
    def has_nested(self) -> bool:
        """Whether a member with a column has extras inside its value."""
        return bool(self._extras)

    def nested(self, row: int) -> Extras:
        """Return the dictionary of a row's extras. The caller adds nested extras to it."""
        return self._extras.setdefault(row, {})

    def add(self, member: CutMember, name: str, rows: Sequence[int]) -> None:
        """Add the values of a member that has no column, with their rows."""
        self._others.extend(
            (row, rank, name, value)
            for row, rank, value in zip(rows, member.ranks, member.values, strict=True)
        )

    def extras(self) -> pa.Array:
        """Return the JSON text of each row's extras, or null for a row without extras.

        Nested extras come first. The other members follow in the order of the message. Raises
        `BlockRefused` if a value has no JSON text.
        """
        for row, _, name, value in sorted(self._others, key=itemgetter(1)):
            self.nested(row)[name] = value
        try:
            made = to_json_each([*self._extras.values()])
        except ColumnMismatch:
            raise BlockRefused(
                [row for row, each in self._extras.items() if not _has_text(each)]
            ) from None
        texts: list[str | None] = [None] * self.size
        for row, text in zip(self._extras, made, strict=True):
            texts[row] = text
        return pa.array(texts, pa.string())


def _extras_of_one(name: str, member: CutMember, rows: Sequence[int], size: int) -> pa.Array:
    """Return the JSON text of each row's extras, of which `name` is the only member.

    Raises `BlockRefused` if a value has no JSON text.
    """
    try:
        texts = _texts(member)
    except ColumnMismatch:
        pairs = zip(rows, member.values, strict=True)
        raise BlockRefused([row for row, value in pairs if not _has_text(value)]) from None
    extras = pc.binary_join_element_wise(f"{{{to_json(name)}:", texts, "}", "")
    return _placed(extras, rows, size)


def _texts(member: CutMember) -> pa.Array:
    """Return the JSON text of each value of the member."""
    if member.texts:
        return to_json_as_written(member.texts, member.values)
    return pa.array(to_json_each(member.values), pa.string())


def _joined(some: pa.Array, others: pa.Array, places: Sequence[int]) -> pa.Array:
    """Return an array with the items of both arrays.

    `places` are the positions of the items of `others`. The items of `some` have the other
    positions, in order.
    """
    if not places:
        return some
    order: list[int | None] = [None] * (len(some) + len(others))
    for at, place in enumerate(places, len(some)):
        order[place] = at
    rest = iter(range(len(some)))
    found = [next(rest) if at is None else at for at in order]
    return pa.concat_arrays([some, others]).take(pa.array(found, pa.int64()))


def _placed(values: pa.Array, rows: Sequence[int], size: int) -> pa.Array:
    """Return an array of length `size` with the values at `rows`, and null elsewhere."""
    if len(rows) == size:
        return values
    places: list[int | None] = [None] * size
    for at, row in enumerate(rows):
        places[row] = at
    return values.take(pa.array(places, pa.int64()))


def _has_text(value: object) -> bool:
    try:
        to_json(value)
    except ColumnMismatch:
        return False
    return True


def _accepts_missing(take: Take) -> bool:
    """Return whether the converter accepts a message without its member."""
    try:
        take({}, {})
    except ColumnMismatch:
        return False
    return True


def member_names(kind: pa.DataType) -> frozenset[str]:
    """Return the names of all members of a type, at all depths."""
    match kind:
        case pa.StructType():
            return frozenset(f.name for f in kind).union(*(member_names(f.type) for f in kind))
        case pa.ListType():
            return member_names(kind.value_type)
        case _:
            return frozenset()


def _column(table: pa.Table, name: str) -> pa.Array:
    return table.column(name).combine_chunks()


def _lines(payloads: pa.Array) -> pa.Buffer:
    """Return one text with a payload on each line.

    A line break inside a payload becomes a carriage return, so that the line breaks before an
    offset count the payloads. JSON treats both characters alike: blanks outside a string, and
    invalid inside.
    """
    if b"\n" in _all_bytes(payloads):
        payloads = pc.replace_substring(payloads, "\n", "\r")
    offsets = pa.array([0, len(payloads)], pa.int32())
    whole = pa.ListArray.from_arrays(offsets, payloads, type=pa.list_(pa.binary()))
    return pc.binary_join(whole, _LINE_BREAK)[0].as_buffer()


def _all_bytes(payloads: pa.Array) -> bytes:
    """Return the payloads without anything between them."""
    _, offsets, values = payloads.buffers()
    if offsets is None or values is None:
        return b""  # there is no payload, or each is empty
    places = memoryview(offsets).cast("i")
    first, end = places[payloads.offset], places[payloads.offset + len(payloads)]
    return values.slice(first, end - first).to_pybytes()


def _check_utf8(payloads: pa.Array, lines: pa.Buffer) -> None:
    """Raise `BlockRefused` if a payload is not UTF-8. Arrow's JSON reader does not check this."""
    try:
        payloads.cast(pa.string())
    except pa.ArrowInvalid:
        _text(lines)
        raise


def _text(lines: pa.Buffer) -> str:
    try:
        return str(memoryview(lines), "utf-8")
    except UnicodeDecodeError as error:
        raise BlockRefused([lines.slice(0, error.start).to_pybytes().count(b"\n")]) from None


def _rows_of_unusual_size(payloads: pa.Array) -> list[int]:
    """Return the positions of messages with an unusual number of members.

    Return an empty list if there are many such messages.
    """
    counts = pc.count_substring(payloads, b'":')
    usual = [
        each["values"]
        for each in pc.value_counts(counts).to_pylist()
        if each["counts"] * _FEW > len(payloads)
    ]
    return _rows_if_few(pc.invert(pc.is_in(counts, pa.array(usual, counts.type))))


def _matches(payloads: pa.Array, pattern: str) -> pa.Array:
    return pc.match_substring_regex(payloads, pattern)


def _risky_integers(kind: pa.DataType) -> str:
    """Return a regular expression for values of integer columns that Arrow may refuse.

    These are numbers with a fraction, an exponent, or at least 19 digits. Without integer columns
    the result is empty.
    """
    names = [re.escape(name) for name in _integers(kind)]
    return rf'"(?:{"|".join(names)})"\s*:\s*-?(?:\d+[.eE]|\d{{19}})' if names else ""


def _integers(kind: pa.DataType) -> list[str]:
    match kind:
        case pa.StructType():
            own = [f.name for f in kind if pa.types.is_integer(f.type)]
            return own + [name for f in kind for name in _integers(f.type)]
        case pa.ListType():
            return _integers(kind.value_type)
        case _:
            return []


def _rows_if_few(mask: pa.Array) -> list[int]:
    """Return the rows for which `mask` is true, or an empty list if they are many.

    A pattern that many messages match does not find the message that Arrow refused.
    """
    rows: list[int] = pc.indices_nonzero(mask).to_pylist()
    are_few = len(rows) == 1 or len(rows) * _FEW // 2 <= len(mask)
    return rows if are_few else []

"""Arrow's JSON reader, made to answer for each message or for none."""

from __future__ import annotations

import json
import re
from collections.abc import Collection, Mapping, Sequence
from itertools import accumulate, chain
from operator import itemgetter
from typing import Final, cast

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.json as pj
from pyspark.sql.types import ArrayType, DataType, IntegralType, StructField, StructType

from twinstream.spark.decode import fields
from twinstream.spark.decode.convert import Take, member_converter
from twinstream.spark.decode.cut_members import CutMember, Cutter
from twinstream.spark.decode.json_text import to_json, to_json_each
from twinstream.spark.decode.misfit import Extras, Misfit
from twinstream.spark.decode.refusal import Refused
from twinstream.spark.decode.shapes import Shape, arrow_type, parsed_type, shape_of

__all__ = ["ArrowJson", "member_names"]

_ROW: Final = re.compile(r" in row (\d+)$")
_VALUE: Final = re.compile(r"couldn't parse:(.+)$", re.DOTALL)
_KIND: Final = re.compile(r"/([^/]+)\) changed from \w+ to (\w+) in row (\d+)$")
_BEGINS: Final = {
    "null": "n",
    "boolean": "[tf]",
    "number": r"[-\d]",
    "string": '"',
    "array": r"\[",
    "object": r"\{",
}
"""How a value of each of the reader's kinds begins."""

_TEXTS: Final = pa.map_(pa.string(), pa.string())
_FEW: Final = 64
"""A number of members that less than one message in so many has is unusual."""


class ArrowJson:
    """Decodes blocks of messages, or raises :class:`~twinstream.spark.decode.refusal.Refused`.

    The members named in ``cuts`` are cut out and converted alone: columns of any type, and members
    without a column, which are extras. Others without a column are refused with ``strict``, and
    passed over without.
    """

    def __init__(
        self,
        columns: StructType,
        cuts: Collection[str] = (),
        *,
        lenient: bool = False,
        strict: bool = True,
        keep_extras: bool = True,
    ) -> None:
        self._names: Final = columns.names
        self._fields: Final = [pa.field(f.name, arrow_type(f.dataType)) for f in columns]
        self._shapes: Final[dict[str, Shape]] = {
            f.name: shape_of(f) for f in columns if f.name not in cuts
        }
        self._takes: Final[dict[str, Take]] = {
            f.name: member_converter(f, lenient=lenient) for f in columns if f.name in cuts
        }
        self._others: Final[frozenset[str]] = (
            frozenset(cuts).difference(self._names) if keep_extras else frozenset()
        )
        self._keep_extras: Final = keep_extras
        self._columns: Final = columns
        self._odd_integers: Final = _odd_integers(columns)
        self._cutter: Final = Cutter(cuts) if cuts else None
        parsed = [pa.field(f.name, parsed_type(f.dataType)) for f in columns if f.name not in cuts]
        self._parse: Final = pj.ParseOptions(
            explicit_schema=pa.schema([*parsed, *(pa.field(name, pa.int64()) for name in cuts)]),
            # Never "infer": it builds a column for every unknown name, and a deeply nested value
            # crashes the process.
            unexpected_field_behavior="error" if strict else "ignore",
        )

    def decode(self, payloads: pa.Array) -> tuple[pa.Array, pa.Array]:
        """Return the rows, and the extras as JSON text."""
        framed = pc.and_(pc.starts_with(payloads, b"{"), pc.ends_with(payloads, b"}"))
        if not pc.all(framed).as_py():
            raise Refused(pc.indices_nonzero(pc.invert(framed)).to_pylist())
        lines = _lines(payloads)
        if self._cutter is None:
            _check_utf8(payloads, lines)
            table = self._read(lines, payloads)
            return self._rows(table, {}), pa.nulls(len(payloads), pa.string())
        text = _text(lines)
        cut, members = self._cutter.cut(text)
        table = self._read(pa.py_buffer(cut), payloads)
        return self._with_members(table, members, text)

    def _read(self, lines: pa.Buffer, payloads: pa.Array) -> pa.Table:
        """Parse all payloads as one text of lines.

        Every payload must begin with ``{`` and end with ``}``: then none can run over into the
        next (the line break between them is neither valid inside a text nor a comma), each gives
        at least one row, and as many rows as messages means one row each.
        """
        options = pj.ReadOptions(use_threads=False, block_size=lines.size + 1)
        try:
            table = pj.read_json(pa.BufferReader(lines), options, self._parse)
        except pa.ArrowInvalid as error:
            raise self._refusal(str(error), payloads) from None
        if table.num_rows != len(payloads):
            raise Refused
        return table

    def _with_members(
        self, table: pa.Table, members: Mapping[str, CutMember], text: str
    ) -> tuple[pa.Array, pa.Array]:
        found = _Found(table.num_rows)
        made: dict[str, pa.Array] = {}
        for spec in self._columns:
            if spec.name in self._takes:
                rows = members[spec.name].rows(_column(table, spec.name), text)
                made[spec.name] = self._converted(spec, rows, members[spec.name].values, found)
        if found.bad:
            raise Refused(found.bad)
        shaped = self._rows(table, made)
        for name in self._others:
            found.add(members[name], name, members[name].rows(_column(table, name), text))
        return shaped, found.extras() if self._keep_extras else pa.nulls(found.size, pa.string())

    def _converted(
        self, spec: StructField, rows: Sequence[int], values: list[object], found: _Found
    ) -> pa.Array:
        """Return a column of values that were cut."""
        take, name, kind = self._takes[spec.name], spec.name, arrow_type(spec.dataType)
        column: list[object] = [None] * found.size
        if len(rows) < found.size and not _takes_nothing(take):
            found.bad.extend(set(range(found.size)).difference(rows))
        if fields.is_json(spec) and fields.is_nullable(spec):
            try:
                for row, each in zip(rows, to_json_each(values), strict=True):
                    column[row] = each
            except Misfit:
                pass  # found below
            else:
                return pa.array(column, kind)
        if kind.equals(_TEXTS) and (made := _text_maps(rows, values, found.size)) is not None:
            return made
        inner: Extras = {}
        for row, value in zip(rows, values, strict=True):
            try:
                column[row] = take({name: value}, inner)
            except Misfit:
                found.bad.append(row)
            if inner:
                found.nested(row).update(inner)
                inner = {}
        return pa.array(column, kind)

    def _refusal(self, error: str, payloads: pa.Array) -> Refused:
        """Return a refusal that points at the messages that the reader's error is about."""
        if kind := _KIND.search(error):
            key = re.escape(json.dumps(kind[1], ensure_ascii=False))
            rows = _few(_matches(payloads, rf"{key}\s*:\s*{_BEGINS[kind[2]]}"))
            if int(kind[3]) in rows:
                return Refused(rows)
        if row := _ROW.search(error):
            return Refused([min(int(row[1]), len(payloads) - 1)], first=True)
        if value := _VALUE.search(error):
            rows = _few(_matches(payloads, self._odd_integers)) if self._odd_integers else []
            return Refused(rows or _few(pc.match_substring(payloads, ":" + value[1])))
        return Refused(_unusual(payloads))

    def _rows(self, table: pa.Table, made: Mapping[str, pa.Array]) -> pa.Array:
        columns = [
            made[name] if name in made else self._shapes[name](_column(table, name))
            for name in self._names
        ]
        return pa.StructArray.from_arrays(columns, fields=self._fields)


class _Found:
    """Extras by row, and the rows that need a closer look."""

    def __init__(self, size: int) -> None:
        self.size = size
        self.bad: list[int] = []
        self._extras: dict[int, Extras] = {}
        self._others: list[tuple[int, int, str, object]] = []

    def nested(self, row: int) -> Extras:
        """Return the extras of a row to add to."""
        return self._extras.setdefault(row, {})

    def add(self, member: CutMember, name: str, rows: Sequence[int]) -> None:
        """Add a member that has no column."""
        self._others.extend(
            (row, start, name, value)
            for row, start, value in zip(rows, member.starts, member.values, strict=True)
        )

    def extras(self) -> pa.Array:
        """Return the text of each row's extras: nested ones, then the others as they stand."""
        for row, _, name, value in sorted(self._others, key=itemgetter(1)):
            self.nested(row)[name] = value
        try:
            made = to_json_each([*self._extras.values()])
        except Misfit:
            raise Refused(
                [row for row, each in self._extras.items() if not _has_text(each)]
            ) from None
        texts: list[str | None] = [None] * self.size
        for row, text in zip(self._extras, made, strict=True):
            texts[row] = text
        return pa.array(texts, pa.string())


def _text_maps(rows: Sequence[int], values: Sequence[object], size: int) -> pa.Array | None:
    """Return maps of texts at once, or nothing if a value is anything else."""
    maps = [cast(dict[str, object], each) for each in values if isinstance(each, dict)]
    if len(maps) != len(values):
        return None
    starts: list[int | None] = [None] * (size + 1)
    starts[size] = 0
    for row, start in zip([*rows, size], accumulate(map(len, maps), initial=0), strict=True):
        starts[row] = start
    try:
        return pa.MapArray.from_arrays(
            pa.array(starts, pa.int32()),
            pa.array(chain.from_iterable(maps), pa.string()),
            pa.array(chain.from_iterable(each.values() for each in maps), pa.string()),
        )
    except (pa.ArrowException, UnicodeEncodeError):
        return None


def _has_text(value: object) -> bool:
    try:
        to_json(value)
    except Misfit:
        return False
    return True


def _takes_nothing(take: Take) -> bool:
    """Tell whether a member may be absent."""
    try:
        take({}, {})
    except Misfit:
        return False
    return True


def member_names(kind: DataType) -> frozenset[str]:
    """Return the names of all members of a type, at all depths."""
    match kind:
        case StructType():
            return frozenset(kind.names).union(*(member_names(f.dataType) for f in kind))
        case ArrayType():
            return member_names(kind.elementType)
        case _:
            return frozenset()


def _column(table: pa.Table, name: str) -> pa.Array:
    return table.column(name).combine_chunks()


def _lines(payloads: pa.Array) -> pa.Buffer:
    """Return all payloads as one text, a line each."""
    offsets = pa.array([0, len(payloads)], pa.int32())
    whole = pa.ListArray.from_arrays(offsets, payloads, type=pa.list_(pa.binary()))
    return pc.binary_join(whole, b"\n")[0].as_buffer()


def _check_utf8(payloads: pa.Array, lines: pa.Buffer) -> None:
    """Refuse what is not UTF-8; the JSON reader does not look."""
    try:
        payloads.cast(pa.string())
    except pa.ArrowInvalid:
        _text(lines)
        raise


def _text(lines: pa.Buffer) -> str:
    try:
        return str(memoryview(lines), "utf-8")
    except UnicodeDecodeError as error:
        raise Refused([lines.slice(0, error.start).to_pybytes().count(b"\n")]) from None


def _unusual(payloads: pa.Array) -> list[int]:
    """Return the messages that have another number of members than most, if they are few."""
    counts = pc.count_substring(payloads, b'":')
    usual = [
        each["values"]
        for each in pc.value_counts(counts).to_pylist()
        if each["counts"] * _FEW > len(payloads)
    ]
    return _few(pc.invert(pc.is_in(counts, pa.array(usual, counts.type))))


def _matches(payloads: pa.Array, pattern: str) -> pa.Array:
    return pc.match_substring_regex(payloads, pattern)


def _odd_integers(kind: DataType) -> str:
    """Return a pattern of integers that Arrow does not take as they are written."""
    names = [re.escape(name) for name in _integers(kind)]
    return rf'"(?:{"|".join(names)})"\s*:\s*-?(?:\d+[.eE]|\d{{19}})' if names else ""


def _integers(kind: DataType) -> list[str]:
    match kind:
        case StructType():
            own = [f.name for f in kind if isinstance(f.dataType, IntegralType)]
            return own + [name for f in kind for name in _integers(f.dataType)]
        case ArrayType():
            return _integers(kind.elementType)
        case _:
            return []


def _few(mask: pa.Array) -> list[int]:
    rows: list[int] = pc.indices_nonzero(mask).to_pylist()
    return rows if len(rows) * _FEW // 2 <= len(mask) or len(rows) == 1 else []

"""Decode JSON payloads to typed columns: vectorised first, message by message where that fails.

A block of messages is parsed in one go by Arrow's JSON reader, which is strict enough but refuses
the whole block for one bad message. A refused block is cut into pieces, and only the
pieces that are refused again are decoded message by message. A message that does not fit gets
a reason instead of a row; nothing is dropped and nothing is guessed.
"""

from __future__ import annotations

from typing import Final

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.json as pj
from attrs import field, frozen
from pyspark.sql.pandas.types import to_arrow_type
from pyspark.sql.types import (
    ArrayType,
    BinaryType,
    DataType,
    DecimalType,
    MapType,
    StructField,
    StructType,
)

from js_spark import fields
from js_spark.convert import converter
from js_spark.json_text import parse, to_json
from js_spark.misfit import Extras, Misfit
from js_spark.scalars import FIRST_DAY, FIRST_MOMENT, LAST_DAY, LAST_MOMENT

__all__ = ["Decoded", "JsonDecoder", "arrow_type"]

#: Pieces that a refused block is cut into. With few broken messages only a few percent of the block
#: go the slow way; a block of nothing but unusual messages costs one more attempt in vain.
_PIECES: Final = 16

_NANOSECONDS: Final = r"(\.\d{6})\d+"


@frozen
class Decoded:
    """The outcome for a block of messages, position by position.

    ``rows`` is a struct array, null where a message did not fit. ``extras`` is JSON text of the
    members without a column, null where there are none. ``misfits`` maps positions to reasons.
    """

    rows: pa.Array
    extras: pa.Array
    misfits: dict[int, str] = field(factory=dict[int, str])


def arrow_type(kind: DataType) -> pa.DataType:
    """Return the Arrow type that Spark expects for a type of its own, timestamps in UTC."""
    return to_arrow_type(kind, timezone="UTC")


def _arrow_fields(kind: StructType) -> list[pa.Field]:
    return [pa.field(each.name, arrow_type(each.dataType)) for each in kind]


class JsonDecoder:
    """Decodes payloads to the given columns.

    ``lenient`` lets text columns take any value as JSON text. Without ``keep_extras`` members
    that have no column are passed over, which keeps such messages on the fast path.
    """

    def __init__(
        self, columns: StructType, *, lenient: bool = False, keep_extras: bool = True
    ) -> None:
        self._convert = converter(columns, lenient=lenient)
        self._type = arrow_type(columns)
        self._keep_extras = keep_extras
        self._fast = _FastPath(columns, keep_extras) if _is_plain(columns) else None

    def decode(self, payloads: pa.Array) -> Decoded:
        """Decode a block; each payload has its outcome at its position."""
        if self._fast is not None:
            rows = self._fast.decode(payloads)
            if rows is not None:
                return Decoded(rows, pa.nulls(len(payloads), pa.string()))
            if len(payloads) > _PIECES:
                return self._in_pieces(payloads)
        return self._one_by_one(payloads)

    def _in_pieces(self, payloads: pa.Array) -> Decoded:
        assert self._fast is not None
        size = -(-len(payloads) // _PIECES)
        parts: list[Decoded] = []
        misfits: dict[int, str] = {}
        for start in range(0, len(payloads), size):
            piece = payloads.slice(start, size)
            rows = self._fast.decode(piece)
            if rows is None:
                part = self._one_by_one(piece)
            else:
                part = Decoded(rows, pa.nulls(len(piece), pa.string()))
            parts.append(part)
            misfits.update((start + at, reason) for at, reason in part.misfits.items())
        rows = pa.concat_arrays([part.rows for part in parts])
        return Decoded(rows, pa.concat_arrays([part.extras for part in parts]), misfits)

    def _one_by_one(self, payloads: pa.Array) -> Decoded:
        rows: list[object] = []
        extras: list[str | None] = []
        misfits: dict[int, str] = {}
        texts: list[bytes] = payloads.to_pylist()
        for at, payload in enumerate(texts):
            row, extra = None, None
            try:
                row, extra = self._one(payload)
            except Misfit as error:
                misfits[at] = str(error)
            rows.append(row)
            extras.append(extra)
        return Decoded(pa.array(rows, self._type), pa.array(extras, pa.string()), misfits)

    def _one(self, payload: bytes) -> tuple[object, str | None]:
        value = parse(payload)
        if value is None:
            raise Misfit("the message: expected an object, got null")
        found: Extras = {}
        row = self._convert(value, found)
        return row, to_json(found) if found and self._keep_extras else None


class _FastPath:
    """Arrow's JSON reader, made to answer for each message or for none."""

    def __init__(self, columns: StructType, keep_extras: bool) -> None:
        self._columns = columns
        self._parse = pj.ParseOptions(
            explicit_schema=pa.schema([pa.field(f.name, _parsed(f.dataType)) for f in columns]),
            # Never "infer": it builds a column for every unknown name, and a deeply nested value
            # crashes the process.
            unexpected_field_behavior="error" if keep_extras else "ignore",
        )

    def decode(self, payloads: pa.Array) -> pa.Array | None:
        """Return the rows, or ``None`` when any message needs a closer look."""
        if not len(payloads):
            return pa.array([], arrow_type(self._columns))
        try:
            table = self._read(payloads)
            if table is None or table.num_rows != len(payloads):
                return None
            return _struct(
                [table.column(name).combine_chunks() for name in self._columns.names],
                self._columns,
                None,
            )
        except (pa.ArrowInvalid, _CloserLook):
            return None

    def _read(self, payloads: pa.Array) -> pa.Table | None:
        """Parse all payloads as one text of lines.

        Every payload must begin with ``{`` and end with ``}``: then none can run over into the
        next (the line break between them is neither valid inside a text nor a comma), each gives
        at least one row, and as many rows as messages means one row each.
        """
        framed = pc.and_(pc.starts_with(payloads, b"{"), pc.ends_with(payloads, b"}"))
        if not pc.all(framed).as_py():
            return None
        payloads.cast(pa.string())  # refuses what is not UTF-8; the JSON reader does not look
        text = _lines(payloads)
        options = pj.ReadOptions(use_threads=False, block_size=text.size + 1)
        return pj.read_json(pa.BufferReader(text), options, self._parse)


def _lines(payloads: pa.Array) -> pa.Buffer:
    """Return all payloads as one text, a line each."""
    offsets = pa.array([0, len(payloads)], pa.int32())
    whole = pa.ListArray.from_arrays(offsets, payloads, type=pa.list_(pa.binary()))
    return pc.binary_join(whole, b"\n")[0].as_buffer()


class _CloserLook(Exception):
    """A block that parsed but holds something the columns alone cannot judge."""


def _is_plain(kind: DataType) -> bool:
    """Tell whether Arrow's JSON reader can build the type."""
    match kind:
        case StructType():
            return not any(map(fields.is_json, kind)) and all(_is_plain(f.dataType) for f in kind)
        case ArrayType():
            return _is_plain(kind.elementType)
        case MapType() | DecimalType() | BinaryType():
            return False
        case _:
            return True


def _parsed(kind: DataType) -> pa.DataType:
    """Return the type to parse as: moments and days as text, which is exact to the last digit."""
    match kind:
        case StructType():
            return pa.struct([pa.field(f.name, _parsed(f.dataType)) for f in kind])
        case ArrayType():
            return pa.list_(_parsed(kind.elementType))
        case _:
            target = arrow_type(kind)
            return pa.string() if pa.types.is_temporal(target) else target


def _struct(children: list[pa.Array], kind: StructType, absent: pa.Array | None) -> pa.Array:
    columns = [_column(child, f, absent) for child, f in zip(children, kind, strict=True)]
    return pa.StructArray.from_arrays(columns, fields=_arrow_fields(kind), mask=absent)


def _column(array: pa.Array, spec: StructField, absent: pa.Array | None) -> pa.Array:
    if fields.is_required(spec) and array.null_count:
        missing = array.is_null() if absent is None else pc.and_not(array.is_null(), absent)
        if pc.any(missing).as_py():
            raise _CloserLook(spec.name)
    return _shaped(array, spec.dataType)


def _shaped(array: pa.Array, kind: DataType) -> pa.Array:
    """Return a parsed array in the exact type that Spark expects."""
    target = arrow_type(kind)
    match kind:
        case StructType():
            absent = array.is_null() if array.null_count else None
            return _struct(array.flatten(), kind, absent)
        case ArrayType():
            mask = array.is_null() if array.null_count else None
            return pa.ListArray.from_arrays(
                array.offsets, _shaped(array.values, kind.elementType), type=target, mask=mask
            )
        case _ if pa.types.is_timestamp(target):
            return _moments(array, target)
        case _ if pa.types.is_date(target):
            return _within(array.cast(target), pa.int32(), FIRST_DAY, LAST_DAY)
        case _ if pa.types.is_floating(target):
            if not pc.all(pc.is_finite(array)).as_py():
                raise _CloserLook("a number that is not finite")
            return array
        case _:
            return array.cast(target)


def _moments(array: pa.Array, target: pa.DataType) -> pa.Array:
    try:
        found = array.cast(target)
    except pa.ArrowInvalid:  # more digits than Spark keeps, mostly
        found = pc.replace_substring_regex(array, _NANOSECONDS, r"\1").cast(target)
    return _within(found, pa.int64(), FIRST_MOMENT, LAST_MOMENT)


def _within(array: pa.Array, number: pa.DataType, first: int, last: int) -> pa.Array:
    """Return moments or days unless Python cannot hold one, such as one before the year 1."""
    ends = pc.min_max(array.cast(number)).as_py()
    if ends["min"] is not None and not first <= ends["min"] <= ends["max"] <= last:
        raise _CloserLook("a moment or day before the year 1 or beyond 9999")
    return array

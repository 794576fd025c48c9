"""Arrow arrays of a message's own parts: subject, sequence, time, headers, payload."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Final, TypeAlias

import pyarrow as pa
from pyspark.sql.types import DataType

from js_core.arrow import header_pairs, text_array
from js_core.arrow_page import ArrowPage
from js_spark import fields
from js_spark.decode import arrow_type

__all__ = ["HEADERS", "Part", "part", "part_type"]

Part: TypeAlias = Callable[[ArrowPage, str], pa.Array]
"""Builds one column of a page; the second argument is the stream's name."""

HEADERS: Final = fields.map_of(fields.array_of(fields.STRING))
"""Names as stored, with all their values in order."""

_MOMENT: Final = arrow_type(fields.TIMESTAMP)


def part(name: str) -> Part:
    """Return the builder of a message's part: subject, data, headers, stream, seq or timestamp."""
    return _PARTS[name]


def part_type(name: str) -> DataType:
    """Return the Spark type of that column."""
    return _TYPES[name]


def _subjects(page: ArrowPage, stream: str) -> pa.Array:
    return text_array(page.subjects)


def _data(page: ArrowPage, stream: str) -> pa.Array:
    return page.payloads


def _seqs(page: ArrowPage, stream: str) -> pa.Array:
    return page.seqs


def _stream(page: ArrowPage, stream: str) -> pa.Array:
    return pa.repeat(pa.scalar(stream, pa.string()), len(page))


def _times(page: ArrowPage, stream: str) -> pa.Array:
    """Microseconds, cut: Spark's timestamps have no more digits."""
    return page.times.cast(_MOMENT, safe=False)


def _headers(page: ArrowPage, stream: str) -> pa.Array:
    blocks: list[bytes] = page.headers.to_pylist()
    return pa.array([header_pairs(block) for block in blocks], arrow_type(HEADERS))


_PARTS: Final[Mapping[str, Part]] = {
    "subject": _subjects,
    "data": _data,
    "headers": _headers,
    "stream": _stream,
    "seq": _seqs,
    "timestamp": _times,
}

_TYPES: Final[Mapping[str, DataType]] = {
    "subject": fields.STRING,
    "data": fields.BINARY,
    "headers": HEADERS,
    "stream": fields.STRING,
    "seq": fields.LONG,
    "timestamp": fields.TIMESTAMP,
}

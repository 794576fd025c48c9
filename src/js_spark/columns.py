"""Arrow arrays of a message's own parts: subject, sequence, time, headers, payload."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Final, TypeAlias

import pyarrow as pa
import pyarrow.compute as pc
from pyspark.sql.types import DataType

from js_core.arrow import header_pairs, text_array
from js_core.stored_page import StoredPage
from js_spark import fields
from js_spark.decode import arrow_type

__all__ = ["HEADERS", "Part", "part", "part_type"]

Part: TypeAlias = Callable[[StoredPage, str], pa.Array]
"""Builds one column of a page; the second argument is the stream's name."""

HEADERS: Final = fields.map_of(fields.array_of(fields.STRING))
"""Names as stored, with all their values in order."""

_MOMENT: Final = arrow_type(fields.TIMESTAMP)
_NANOSECONDS: Final = r"(\.\d{6})\d+"


def part(name: str) -> Part:
    """Return the builder of a message's part: subject, data, headers, stream, seq or timestamp."""
    return _PARTS[name]


def part_type(name: str) -> DataType:
    """Return the Spark type of that column."""
    return _TYPES[name]


def _subjects(page: StoredPage, stream: str) -> pa.Array:
    return text_array(page.subjects)


def _data(page: StoredPage, stream: str) -> pa.Array:
    return pa.array(page.payloads, pa.binary())


def _seqs(page: StoredPage, stream: str) -> pa.Array:
    return pa.array(page.seqs, pa.int64())


def _stream(page: StoredPage, stream: str) -> pa.Array:
    return pa.repeat(pa.scalar(stream, pa.string()), len(page))


def _times(page: StoredPage, stream: str) -> pa.Array:
    """Microseconds, cut: Spark's timestamps have no more digits."""
    numbers = [each // 1000 for each in page.times if isinstance(each, int)]
    if numbers:
        return pa.array(numbers, pa.int64()).cast(_MOMENT)
    text = pa.array(page.times, pa.binary()).cast(pa.string())
    return pc.replace_substring_regex(text, _NANOSECONDS, r"\1").cast(_MOMENT)


def _headers(page: StoredPage, stream: str) -> pa.Array:
    return pa.array([header_pairs(block) for block in page.headers], arrow_type(HEADERS))


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

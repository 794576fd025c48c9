"""Build Arrow arrays of the parts of messages: subject, sequence, time, headers, payload."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Final, TypeAlias

import pyarrow as pa
import pyarrow.compute as pc
from attrs import frozen

from twinstream.core.read.arrow import header_array, text_array
from twinstream.core.read.arrow_page import ArrowPage
from twinstream.spark.decode import fields
from twinstream.spark.decode.json_schema import Uint64
from twinstream.spark.errors import OptionError

__all__ = ["HEADERS", "MessageColumns", "Part", "key_array", "part", "part_type"]

Part: TypeAlias = Callable[[ArrowPage, str], pa.Array]
"""A function that builds one column of a page. Its second argument is the stream's name."""

HEADERS: Final = fields.map_of(fields.array_of(fields.STRING))
"""The type of the headers: a map from each name, as stored, to its values in order."""

_SEQS: Final = frozenset({"seq", "revision"})


@frozen
class MessageColumns:
    """The names of the columns that identify the message of a row.

    `subject` is the column of the subject, or of the key of a bucket. `seq` is the column of the
    sequence, or of the revision.
    """

    subject: str
    seq: str
    time: str

    @classmethod
    def of(cls, value_format: str, *, is_bucket: bool) -> MessageColumns:
        """Return the names for a read of a stream or of a bucket."""
        names = ("key", "revision", "time") if is_bucket else ("subject", "seq", "timestamp")
        prefix = "" if value_format == "raw" else "_"
        return cls(*(prefix + each for each in names))


def part(name: str, uint64: Uint64) -> Part:
    """Return the builder of the column for a part of the messages.

    `name` is subject, data, headers, stream, seq or timestamp. For a read of a bucket, it is
    headers, revision or time; `Batcher` builds the other columns of a bucket. `uint64` sets the
    type of the column for sequences and revisions, which are unsigned 64-bit numbers.
    """
    if name in _SEQS and uint64 == "decimal":
        return _decimal_seqs
    return _PARTS[name]


def part_type(name: str, uint64: Uint64) -> pa.DataType:
    """Return the type of the column for a part of the messages or of a bucket's entries."""
    if name in _SEQS and uint64 == "decimal":
        return fields.DECIMAL20
    return _TYPES[name]


def key_array(subjects: pa.Array, prefix: str) -> pa.Array:
    """Return the keys of stored subjects: the subjects without `prefix`."""
    texts = text_array(subjects)
    if pc.all(pc.starts_with(subjects, prefix.encode())).as_py():
        return pc.utf8_slice_codeunits(texts, start=len(prefix))
    return pa.array([each.removeprefix(prefix) for each in texts.to_pylist()], pa.string())


def _subjects(page: ArrowPage, stream: str) -> pa.Array:
    return text_array(page.subjects)


def _data(page: ArrowPage, stream: str) -> pa.Array:
    return page.payloads


def _seqs(page: ArrowPage, stream: str) -> pa.Array:
    if page.seqs.type == pa.int64():
        return page.seqs
    raise OptionError(
        "uint64",
        f"is long, and sequence {page.seqs[-1]} of stream {stream} is above 2**63 - 1, the most"
        " that a bigint can have: set uint64=decimal, or select columns without the sequence",
    )


def _decimal_seqs(page: ArrowPage, stream: str) -> pa.Array:
    return page.seqs.cast(fields.DECIMAL20)


def _stream(page: ArrowPage, stream: str) -> pa.Array:
    return pa.repeat(pa.scalar(stream, pa.string()), len(page))


def _times(page: ArrowPage, stream: str) -> pa.Array:
    """Return times, truncated to microseconds, the resolution of the column."""
    return page.times.cast(fields.TIMESTAMP, safe=False)


def _headers(page: ArrowPage, stream: str) -> pa.Array:
    return header_array(page.headers, HEADERS)


_PARTS: Final[Mapping[str, Part]] = {
    "subject": _subjects,
    "data": _data,
    "headers": _headers,
    "stream": _stream,
    "seq": _seqs,
    "timestamp": _times,
    "revision": _seqs,
    "time": _times,
}

_TYPES: Final[Mapping[str, pa.DataType]] = {
    "subject": fields.STRING,
    "data": fields.BINARY,
    "headers": HEADERS,
    "stream": fields.STRING,
    "seq": fields.LONG,
    "timestamp": fields.TIMESTAMP,
    "key": fields.STRING,
    "value": fields.BINARY,
    "revision": fields.LONG,
    "operation": fields.STRING,
    "time": fields.TIMESTAMP,
}

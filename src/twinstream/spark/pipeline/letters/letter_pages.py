"""Read dead letters from their files as the messages that they were."""

from __future__ import annotations

from collections.abc import Container, Iterable, Iterator, Sequence
from pathlib import Path
from typing import Any, Final

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.dataset as ds
import pyarrow.parquet as pq
from attrs import frozen

from twinstream.core.read.arrow_page import ArrowPage
from twinstream.lake.objects.files import arrow_files
from twinstream.lake.objects.folder import ObjectFolder
from twinstream.records.headers import VERSION
from twinstream.spark.errors import JournalError
from twinstream.spark.landing.split_tables import BATCH_COLUMN
from twinstream.spark.pipeline.tables.parquet_files import damage_named
from twinstream.spark.source.batcher import BAD_HEADERS
from twinstream.spark.source.columns import MessageColumns
from twinstream.spark.source.read_columns import ERROR

__all__ = ["PAGE", "BatchLetters", "LetterPage", "have_headers", "letter_pages"]

PAGE: Final = 4096
"""The maximum number of letters that are in memory at once. Payloads may be large."""

_MOST_SIGNED: Final = 2**63 - 1
_HEADERS: Final = "_headers"
_HEADER_MAP: Final = pa.map_(pa.string(), pa.list_(pa.string()))
_TIME: Final = pa.timestamp("us", "UTC")


@frozen
class BatchLetters:
    """The dead letters of a batch: the files in which they are, perhaps with others.

    If `lake` is given, the paths of the files are relative to it.
    """

    batch: int
    files: tuple[Path, ...]
    lake: ObjectFolder | None = None


@frozen
class LetterPage:
    """Some letters: the messages, the reason of each, and its batch.

    The messages of a bucket have its keys as subjects.
    """

    messages: ArrowPage
    reasons: pa.Array
    batches: pa.Array


def letter_pages(
    letters: BatchLetters, payload: str, others: Sequence[int] = ()
) -> Iterator[LetterPage]:
    """Yield the letters of a batch, and of the batches `others`, which have the same files.

    `payload` is the name of the column with the payload.

    Headers are those that are stored with the letters. Raises `JournalError` if a file is damaged,
    or if a letter has no payload.
    """
    if not letters.files:
        return
    names = [str(file) for file in letters.files]
    lake, store = letters.lake, arrow_files(letters.lake)
    with damage_named(names, [ERROR, payload], lake):
        schemas = [pq.read_schema(name, filesystem=store) for name in names]
        found = {each.name: each.type for schema in schemas for each in schema}
        columns = MessageColumns.of("json", is_bucket="_key" in found)
        types = {columns.subject: pa.string(), columns.time: _TIME}
        types |= {ERROR: pa.string(), payload: pa.binary()}
        _check(found, [columns.seq, *types], letters)
        # Delta writes text as views, which Arrow cannot filter.
        types |= {columns.seq: found[columns.seq], BATCH_COLUMN: pa.int64()}
        if _HEADERS in found:
            types[_HEADERS] = _HEADER_MAP
        rows = ds.dataset(names, schema=pa.schema(list(types.items())), filesystem=store)
        wanted = ds.field(BATCH_COLUMN).isin([letters.batch, *others])
        for batch in rows.to_batches(filter=wanted, batch_size=PAGE):
            if batch.num_rows:
                yield _letter_page(batch, columns, payload, letters)


def have_headers(files: Iterable[Path], lake: ObjectFolder | None) -> bool:
    """Return whether files have letters with headers. `lake` is that of `BatchLetters`."""
    names, columns = [str(file) for file in files], pa.schema([(_HEADERS, _HEADER_MAP)])
    rows = ds.dataset(names, schema=columns, filesystem=arrow_files(lake))
    return any(part.column(0).null_count < part.num_rows for part in rows.to_batches())


def _check(found: Container[str], needed: Sequence[str], letters: BatchLetters) -> None:
    missing = [name for name in needed if name not in found]
    if missing:
        raise JournalError(
            f"the dead letters in {letters.files[0].parent} have no column {missing[0]!r}: they"
            " were landed with another columnNameOfCorruptRecord, or another program wrote them"
        )


def _letter_page(
    batch: pa.RecordBatch, columns: MessageColumns, payload: str, letters: BatchLetters
) -> LetterPage:
    """Return rows of the table of dead letters as messages.

    Raises `JournalError` if a row has null in the column `payload`.
    """
    payloads = batch.column(payload)
    if payloads.null_count:
        number = batch.column(BATCH_COLUMN).filter(payloads.is_null())[0].as_py()
        raise JournalError(
            f"dead letters of batch {number} in {letters.files[0].parent} have no payload in"
            f" column {payload!r}: they were landed with another columnNameOfCorruptRecord"
        )
    messages = ArrowPage(
        _seqs(batch.column(columns.seq)),
        batch.column(columns.subject).cast(pa.binary()),
        batch.column(columns.time).cast(pa.timestamp("ns", "UTC")),
        _header_blocks(batch),
        payloads.cast(pa.binary()),
    )
    return LetterPage(messages, batch.column(ERROR), batch.column(BATCH_COLUMN))


def _seqs(column: pa.Array) -> pa.Array:
    # Sequences are decimals if uint64=decimal.
    seqs = column.cast(pa.uint64())
    return seqs.cast(pa.int64()) if pc.max(seqs).as_py() <= _MOST_SIGNED else seqs


def _header_blocks(batch: pa.RecordBatch) -> pa.Array:
    """Return header blocks, which are empty for letters without headers."""
    if _HEADERS not in batch.schema.names:
        return pa.array([b""] * batch.num_rows, pa.binary())
    rows = zip(batch.column(_HEADERS).to_pylist(), batch.column(ERROR).to_pylist(), strict=True)
    return pa.array([_header_block(*each) for each in rows], pa.binary())


def _header_block(pairs: Any, reason: str) -> bytes:
    """Return the block of which `header_pairs` made the pairs; of a malformed one, its text.

    The first pair of a malformed block has an empty name. A well-formed block may have an empty
    name, too, and `reason`, why the message is a dead letter, tells them apart.
    """
    if pairs is None:
        return b""
    if reason.startswith(BAD_HEADERS):
        return str(pairs[0][1][0]).encode()
    lines = [VERSION, *(f"{name}: {value}" for name, values in pairs for value in values)]
    return "\r\n".join([*lines, "", ""]).encode()

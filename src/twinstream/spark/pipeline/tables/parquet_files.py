"""Read and merge Parquet files piece by piece, so that a table need not fit into memory."""

from __future__ import annotations

import uuid
from collections.abc import Generator, Iterable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Final

import pyarrow as pa
import pyarrow.dataset as ds
import pyarrow.parquet as pq
from attrs import frozen

from twinstream.disk.safe_files import make_folders, sync
from twinstream.lake.objects.files import arrow_files
from twinstream.lake.objects.folder import ObjectFolder
from twinstream.spark.errors import JournalError, SchemaError
from twinstream.spark.landing.landed_seqs import between
from twinstream.spark.landing.split_tables import BATCH_COLUMN

__all__ = [
    "AT_ONCE",
    "Part",
    "damage_named",
    "merge",
    "reader_of",
    "scanned",
    "schema_of",
    "unified",
    "write_rows",
]


# How many batches of rows, and how many files, are read in advance. By default there are 16 and 4,
# which takes much memory.
_AHEAD: Final = 1

AT_ONCE: Final = 250
"""The number of files of a dataset, which keeps some 40 kB of each file that it has read."""


@frozen
class Part:
    """Files to read. The expression `wanted` selects their rows; `None` selects all rows."""

    files: Sequence[Path]
    wanted: ds.Expression | None = None


def scanned(
    files: Sequence[str],
    columns: Sequence[str],
    seq: str,
    low: int,
    high: int,
    since: int,
    lake: ObjectFolder | None = None,
) -> Iterator[pa.RecordBatch]:
    """Yield columns of the rows whose sequence, in column `seq`, is in `[low, high)`.

    If `lake` is given, the names of the files are relative to it. Only rows of batches numbered
    `since` or higher are returned. Raises `JournalError` with the name of the file if a file is
    damaged.
    """
    with damage_named(files, columns, lake):
        store = arrow_files(lake)
        first = ds.dataset(files[:1], filesystem=store).schema
        # A dataset of files with views cannot get another schema later.
        schema = pa.schema([_without_view(each) for each in first])
        wanted = between(seq, schema.field(seq).type, low, high)
        wanted &= ds.field(BATCH_COLUMN) >= since
        for at in range(0, len(files), AT_ONCE):
            rows = ds.dataset(files[at : at + AT_ONCE], schema=schema, filesystem=store)
            yield from rows.to_batches(
                columns=list(columns),
                filter=wanted,
                batch_readahead=_AHEAD,
                fragment_readahead=_AHEAD,
                use_threads=False,
            )


def _without_view(column: pa.Field) -> pa.Field:
    """Return a column of text without a view, which Delta writes and Arrow cannot filter."""
    plain = {pa.string_view(): pa.string(), pa.binary_view(): pa.binary()}
    return column.with_type(plain.get(column.type, column.type))


@contextmanager
def damage_named(
    files: Sequence[str], columns: Sequence[str], lake: ObjectFolder | None = None
) -> Generator[None]:
    """Raise `JournalError` with the name of the file if the block fails at a damaged file."""
    try:
        yield
    except FileNotFoundError:
        raise
    except (OSError, pa.ArrowInvalid) as error:
        damaged = _damaged(files, columns, lake)
        if damaged is None:
            raise
        raise JournalError(
            f"the file {damaged} cannot be read ({str(error).strip()}): move it away, and land its"
            " batches again with twinstream pipeline replay"
        ) from error


def _damaged(files: Sequence[str], columns: Sequence[str], lake: ObjectFolder | None) -> str | None:
    for file in files:
        try:
            pq.ParquetFile(file, filesystem=arrow_files(lake)).read(columns=list(columns))
        except (OSError, pa.ArrowInvalid):
            return file
    return None


def reader_of(rows: ds.Dataset) -> pa.RecordBatchReader:
    """Return a reader of all rows of a dataset.

    pyarrow's own `Scanner.to_reader` (26.0.1) holds Python's lock while it starts threads that
    read. If one of them fails to open a file of an object store in this moment, it waits for
    Python's lock with a lock that `to_reader` waits for, and the process hangs.
    """
    return pa.RecordBatchReader.from_batches(rows.schema, rows.to_batches())


def schema_of(files: Sequence[Path], lake: ObjectFolder | None = None) -> pa.Schema:
    """Return the schema with the columns of all files. Raises `SchemaError` if types differ.

    If `lake` is given, the paths are relative to it.
    """
    store = arrow_files(lake)
    return unified(pq.read_schema(str(file), filesystem=store) for file in files)


def unified(schemas: Iterable[pa.Schema]) -> pa.Schema:
    """Return the schema with the columns of all schemas. Raises `SchemaError` if types differ."""
    different: list[pa.Schema] = []
    for each in schemas:
        if each not in different:
            different.append(each)
    try:
        return pa.unify_schemas(different) if different else pa.schema([])
    except (pa.ArrowInvalid, pa.ArrowTypeError) as error:
        raise SchemaError(f"files of one table do not fit together: {error}") from error


def merge(parts: Sequence[Part], folder: Path) -> Path | None:
    """Write the rows of all parts into one new file in `folder`, in the order of the parts.

    Returns the file. Without rows, no file is written and the result is `None`.
    """
    parts = [part for part in parts if part.files]
    if not parts:
        return None
    schema = schema_of([file for part in parts for file in part.files])
    return write_rows(_batches(parts, schema), schema, folder)


def write_rows(batches: Iterable[pa.RecordBatch], schema: pa.Schema, folder: Path) -> Path | None:
    """Write rows into one new file in `folder`, and return the file as `merge` does."""
    file = folder / f"part-{uuid.uuid4().hex}.parquet"
    writer: pq.ParquetWriter | None = None
    try:
        for batch in batches:
            if writer is None:
                make_folders(folder)
                writer = pq.ParquetWriter(file, schema, compression="zstd")
            writer.write_batch(batch)
    finally:
        if writer is not None:
            writer.close()
    if writer is None:
        return None
    sync([file, folder])
    return file


def _batches(parts: Sequence[Part], schema: pa.Schema) -> Iterator[pa.RecordBatch]:
    for part in parts:
        rows = ds.dataset([str(file) for file in part.files], schema=schema)
        for batch in rows.to_batches(filter=part.wanted):
            if batch.num_rows:
                yield batch

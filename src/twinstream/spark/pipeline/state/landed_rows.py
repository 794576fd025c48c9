"""Read the rows of a range of sequences from the tables of a source, to compare with the stream."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final

import pyarrow as pa
import pyarrow.compute as pc
from attrs import frozen

from twinstream.lake.entry import BatchEntry
from twinstream.spark.landing.split_tables import BATCH_COLUMN
from twinstream.spark.landing.staging import Written
from twinstream.spark.pipeline.settings.config import SourceConfig
from twinstream.spark.pipeline.tables.parquet_files import scanned
from twinstream.spark.pipeline.tables.sink import Sink

__all__ = [
    "MESSAGES",
    "LandedRows",
    "messages_of",
    "missing_of",
    "possible_tables",
    "read_landed",
    "tables_of",
]

MESSAGES: Final = pa.schema([("seq", pa.uint64()), ("time", pa.timestamp("us", "UTC"))])
"""The columns that identify a message. The time is needed because a stream that was restored to an
earlier state assigns the same sequences again."""

_ROWS: Final = pa.schema([*MESSAGES, pa.field("batch", pa.int64())])


@frozen
class LandedRows:
    """The rows of a range in the tables of a source.

    `rows` has the sequence, the time and the batch number of each row.
    """

    rows: pa.Table

    @property
    def seqs(self) -> pa.ChunkedArray:
        """The sequence of each row."""
        return self.rows.column("seq")

    @property
    def count(self) -> int:
        """The number of rows."""
        return self.rows.num_rows

    @property
    def distinct(self) -> int:
        """The number of distinct sequences."""
        return int(pc.count_distinct(self.seqs).as_py())

    def doubles(self, most: int = 5) -> list[int]:
        """Return the lowest sequences, at most `most`, that have more than one row."""
        counted = self.rows.group_by("seq").aggregate([("batch", "count")])
        several = counted.filter(pc.field("batch_count") > 1).column("seq")
        return sorted(several.to_pylist())[:most]

    def landed_again(self, batch: int, most: int = 5) -> list[int]:
        """Return the sequences of messages that were landed before batch `batch` and again since.

        A message is in the list if it has a row of an earlier batch, and a row of this batch or a
        later batch. The list has the lowest sequences, at most `most`.
        """
        before = self.rows.filter(pc.field("batch") < batch)
        if not before.num_rows:
            return []
        keys = MESSAGES.names
        again = self.since(batch).rows.join(before.select(keys), keys, join_type="left semi")
        return sorted(set(again.column("seq").to_pylist()))[:most]

    def since(self, batch: int) -> LandedRows:
        """Return the rows of batches with this number or a higher number."""
        return LandedRows(self.rows.filter(pc.field("batch") >= batch))

    def up_to(self, batch: int) -> LandedRows:
        """Return the rows of batches with this number or a lower number."""
        return LandedRows(self.rows.filter(pc.field("batch") <= batch))

    def by_batch(self) -> dict[int, int]:
        """Return the number of rows of each batch."""
        counted = self.rows.group_by("batch").aggregate([("seq", "count")])
        batches, rows = counted.column("batch").to_pylist(), counted.column("seq_count").to_pylist()
        return dict(zip(batches, rows, strict=True))


def tables_of(source: SourceConfig, entries: Iterable[BatchEntry]) -> list[str]:
    """Return the tables to which the batches of a source wrote, and its configured table.

    A source of advisories has no configured table, nor has one with tables by a token. The last
    item is the table of dead letters.
    """
    names = {name for entry in entries for name in entry.tables}
    if source.format != "advisory" and not source.token:
        names.add(source.table)
    return [*sorted(names - {source.dead_letters}), source.dead_letters]


def possible_tables(source: SourceConfig, sink: Sink) -> list[str]:
    """Return the tables to which a source may write; of those by a token, the existing ones."""
    return source.tables.possible(source.format, sink.existing)


def read_landed(
    sink: Sink, source: SourceConfig, tables: Iterable[str], low: int, high: int, since: int = 0
) -> LandedRows:
    """Return the rows of tables with a sequence in `[low, high)`.

    Only batches numbered `since` or higher are read.
    """
    columns = [source.seq_column, source.time_column, BATCH_COLUMN]
    found: list[pa.RecordBatch] = []
    for table in tables:
        # The column names are the same in the table of dead letters. They begin with an underscore
        # in all tables except those of raw sources, which have no dead letters.
        for part in sink.scan(table, columns, source.seq_column, low, high, since):
            # Another program may have rewritten a table with another time resolution, so cast.
            arrays = [part.column(at).cast(each.type, safe=False) for at, each in enumerate(_ROWS)]
            found.append(pa.RecordBatch.from_arrays(arrays, schema=_ROWS))
    return LandedRows(pa.Table.from_batches(found, schema=_ROWS))


def messages_of(written: Iterable[Written], source: SourceConfig, low: int, high: int) -> pa.Table:
    """Return the messages with a sequence in `[low, high)` for which the files have rows.

    The result has the columns `MESSAGES`.
    """
    columns = [source.seq_column, source.time_column]
    found: list[pa.RecordBatch] = []
    for each in written:
        names = [str(file) for file in each.files]
        for part in scanned(names, columns, source.seq_column, low, high, 0, each.lake):
            arrays = [part.column(at).cast(kind.type) for at, kind in enumerate(MESSAGES)]
            found.append(pa.RecordBatch.from_arrays(arrays, schema=MESSAGES))
    return pa.Table.from_batches(found, schema=MESSAGES)


def missing_of(wanted: pa.Table, found: pa.Table) -> list[int]:
    """Return the sequences, ascending, of the messages in `wanted` that `found` lacks."""
    keys = MESSAGES.names
    missing = wanted.select(keys).join(found.select(keys), keys, join_type="left anti")
    seqs: list[int] = missing.column("seq").to_pylist()
    return sorted(seqs)

"""The reports of a landing, with counts that can be compared with the stream."""

from __future__ import annotations

from attrs import field, frozen


@frozen(kw_only=True)
class TableReport:
    """The report on one table to which a batch wrote.

    Attributes:
        name: the table's name, which is also its path below the landing folder.
        path: the table's folder, with Parquet files below `batch_id=N` folders.
        rows: number of rows of this batch.
        files: number of Parquet files of this batch.
    """

    name: str
    path: str
    rows: int
    files: int


@frozen(kw_only=True)
class LandReport:
    """The report on one landed batch of one stream.

    Each landed message is either a row of a table or a dead letter:
    `messages = rows + dead_letters`. `distinct_seqs` is the number of different sequences among
    all of them. `first_seq` and `last_seq` are the lowest and highest landed sequence (0 if the
    batch is empty). `start` (inclusive) and `end` (exclusive) are the bounds of the batch. If
    there were no new messages, no batch was written, and `batch_id` is -1.
    """

    stream: str
    """Name of the stream."""
    path: str
    """The folder of the tables."""
    batch_id: int
    start: int
    end: int
    messages: int
    """Number of landed messages."""
    rows: int
    """Number of them that are rows of tables."""
    dead_letters: int
    """Number of them that are dead letters."""
    distinct_seqs: int
    first_seq: int
    last_seq: int
    tables: tuple[TableReport, ...] = ()
    """What was written to each table."""

    @property
    def files(self) -> int:
        """The number of Parquet files that the batch wrote to all tables."""
        return sum(table.files for table in self.tables)


@frozen(kw_only=True)
class SubjectSummary:
    """The number of rows of one subject in a landed table, and the bounds of sequence and time."""

    subject: str
    """The subject."""
    rows: int
    """Number of its rows."""
    # With uint64=decimal, the table contains decimals.
    first_seq: int = field(converter=int)
    """Its lowest sequence."""
    last_seq: int = field(converter=int)
    """Its highest sequence."""
    first_time: str
    """Its earliest time."""
    last_time: str
    """Its latest time."""

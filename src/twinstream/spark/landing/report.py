"""The reports of a landing: counts that can be compared with the stream."""

from __future__ import annotations

from attrs import field, frozen


@frozen(kw_only=True)
class TableReport:
    """One table that a batch wrote to.

    Attributes:
        path: the table's folder, with Parquet files below ``batch_id=N`` folders.
        rows: number of rows of this batch.
        files: number of Parquet files of this batch.
    """

    name: str
    path: str
    rows: int
    files: int


@frozen(kw_only=True)
class LandReport:
    """The result of landing one batch of one stream.

    Every message of the range is in exactly one place: ``messages = rows + dead_letters``.
    ``distinct_seqs`` counts distinct stream sequences among both. ``first_seq`` and ``last_seq``
    are the lowest and highest sequence landed (0 if the batch is empty); ``start`` (inclusive)
    and ``end`` (exclusive) are the bounds that were read. ``batch_id`` is -1 if there were no new
    messages and so no batch was written.
    """

    stream: str
    path: str
    batch_id: int
    start: int
    end: int
    messages: int
    rows: int
    dead_letters: int
    distinct_seqs: int
    first_seq: int
    last_seq: int
    tables: tuple[TableReport, ...] = ()

    @property
    def files(self) -> int:
        """Number of Parquet files that the batch wrote, over all tables."""
        return sum(table.files for table in self.tables)


@frozen(kw_only=True)
class SubjectSummary:
    """Counts of one subject in a landed table."""

    subject: str
    rows: int
    # The values are decimals if uint64=decimal.
    first_seq: int = field(converter=int)
    last_seq: int = field(converter=int)
    first_time: str
    last_time: str

"""Divide messages among tables: one table per kind of message, and one for dead letters."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from typing import TYPE_CHECKING, Final

import pyarrow as pa
import pyarrow.compute as pc
from attrs import evolve, field, frozen

from twinstream.lake.entry import DEAD_LETTERS
from twinstream.spark.decode import fields
from twinstream.spark.decode.events import EVENT_COLUMNS
from twinstream.spark.errors import SchemaError
from twinstream.spark.landing.file_settings import FileSettings
from twinstream.spark.landing.partition_rows import by_value, divided
from twinstream.spark.landing.partitions import (
    Partition,
    file_columns,
    table_columns,
    tokens_of,
)
from twinstream.spark.landing.token_tables import MAX_TABLES, named, refuse_many
from twinstream.spark.source.batcher import Batcher
from twinstream.spark.source.columns import MessageColumns
from twinstream.spark.source.options import SourceOptions
from twinstream.spark.source.read_columns import ERROR, EXTRA, OPERATION, ReadColumns

if TYPE_CHECKING:
    from twinstream.core.read.arrow_page import ArrowPage

__all__ = [
    "BATCH_COLUMN",
    "DEAD_LETTERS",
    "FOLDER_COLUMN",
    "OTHER_EVENTS",
    "Place",
    "TableNames",
    "TableSplit",
    "refuse_members",
]

OTHER_EVENTS: Final = "other_events"
"""The table of events whose type is unknown to this release; the document is in `_extra`."""

BATCH_COLUMN: Final = "_batch_id"
"""The column with the number of the batch that landed the row."""

FOLDER_COLUMN: Final = "batch_id"
"""The column that Parquet readers derive from the name of a batch folder."""

_KIND: Final = "kind"
_KINDS: Final = frozenset(EVENT_COLUMNS.names) - {_KIND}


def refuse_members(options: SourceOptions, *taken: str) -> None:
    """Raise `SchemaError` if a member of the payload has one of the names `taken`.

    These are the names of columns that landing adds to tables. With two columns of the same name,
    readers of the tables would fail or show the values of the added column.
    """
    for name in ReadColumns(options).payload.names:
        if name.lower() in taken:
            raise SchemaError(
                f"the payload has a member {name!r}, which is also a column that the batch adds to"
                " tables; leave it out of the schema (it is kept in _extra)"
            )


def _none(prefix: str) -> Iterable[str]:
    return ()


@frozen
class Place:
    """Where rows belong: a table, and the partition there, or an empty text without partitions."""

    table: str
    partition: str = ""


@frozen(kw_only=True)
class TableNames:
    """The names of the tables of one stream.

    `table` is for messages that match the schema, and `dead_letters` is for all others. Events
    have one table per kind instead of `table`. The name of such a table is `prefix` followed by
    the kind. All tables except that for dead letters have the `partitions`.

    With a `token`, the number of a token of the subject, `table` is the prefix of the names of the
    tables for the values of the token.
    """

    table: str
    dead_letters: str
    prefix: str = ""
    partitions: tuple[Partition, ...] = ()
    files: FileSettings = field(factory=FileSettings)
    token: int = 0
    max_tables: int = MAX_TABLES
    """The largest number of tables by a token."""

    def possible(
        self, value_format: str, existing: Callable[[str], Iterable[str]] = _none
    ) -> list[str]:
        """Return the names of all tables to which messages of a format could be written.

        `existing` returns the tables of the lake whose names begin with a prefix. Of the tables by
        a token, only those that exist are returned.
        """
        if self.token:
            return [*existing(self.table), self.dead_letters]
        if value_format != "advisory":
            return [self.table, self.dead_letters]
        return [
            *(self.prefix + kind for kind in (*sorted(_KINDS), OTHER_EVENTS)),
            self.dead_letters,
        ]

    def refuse_many(self, tables: Iterable[str]) -> None:
        """Raise `OptionError` if these tables, by a token, are more than `max_tables`."""
        if self.token:
            names = (each for each in tables if each != self.dead_letters)
            refuse_many(self.table, self.token, names, self.max_tables)


class TableSplit:
    """A converter of pages of one stream to rows of tables.

    If `batch` is given, each row gets a column with this number.
    """

    def __init__(self, options: SourceOptions, names: TableNames, batch: int | None = None) -> None:
        layout = ReadColumns(options)
        self._names: Final = names
        self._batch: Final = batch
        self._format: Final = options.value_format
        self._raw: Final = layout.raw_column
        self._layout: Final = layout.columns
        # The columns that each table has beside those of the payload. With a schema, `_columns_of`
        # adds the four excluded columns to the tables that need them.
        self._beside: Final = [
            each
            for each in layout.beside
            if options.value_format == "raw"
            or each.name not in {EXTRA, OPERATION, ERROR, self._raw}
        ]
        self._batcher: Final = Batcher(options, layout.columns)
        is_bucket = options.bucket is not None
        self._subject: Final = MessageColumns.of(self._format, is_bucket=is_bucket).subject
        stored = names.files.in_catalog
        self._divided: Final = tuple(evolve(each, stored=stored) for each in names.partitions)
        self._schemas: Final[dict[str, pa.Schema]] = {}

    def split(self, page: ArrowPage, stream: str) -> Iterator[tuple[Place, pa.RecordBatch]]:
        """Yield each table and partition for which a page has rows, and the rows."""
        rows = self._batcher.build(page, stream)
        if self._format == "raw":
            yield from self._messages(rows)
            return
        reasons = rows.column(ERROR)
        if reasons.null_count < len(reasons):
            yield from self._rows(self._names.dead_letters, rows.filter(reasons.is_valid()))
            rows = rows.filter(reasons.is_null())
        if self._format == "json":
            yield from self._messages(rows)
        else:
            yield from self._events(rows)

    def _messages(self, rows: pa.RecordBatch) -> Iterator[tuple[Place, pa.RecordBatch]]:
        names = self._names
        if not names.token:
            yield from self._rows(names.table, rows)
            return
        for token, inside in by_value(rows, tokens_of(rows.column(self._subject), names.token)):
            table = named(names.table, token, in_catalog=names.files.in_catalog)
            yield from self._rows(table, inside)

    def tables(self, existing: Callable[[str], Iterable[str]] = _none) -> list[str]:
        """Return the names of all tables that may get rows. Raw messages are never dead letters.

        `existing` is that of `TableNames.possible`.
        """
        found = self._names.possible(self._format, existing)
        if self._format == "raw":
            found.remove(self._names.dead_letters)
        return found

    def columns(self, table: str) -> pa.Schema:
        """Return the columns of a table, with a note of its partitions."""
        return table_columns(self._own_columns(table), self._partitions(table))

    def _own_columns(self, table: str) -> pa.Schema:
        found = self._columns_of(table)
        if self._batch is not None:
            found.append(pa.field(BATCH_COLUMN, fields.LONG, nullable=False))
        return pa.schema(found)

    def _partitions(self, table: str) -> tuple[Partition, ...]:
        return () if table == self._names.dead_letters else self._divided

    def _events(self, rows: pa.RecordBatch) -> Iterator[tuple[Place, pa.RecordBatch]]:
        kinds = rows.column(_KIND)
        for kind in kinds.unique().to_pylist():
            others = rows.filter(pc.equal(kinds, kind))
            if kind in _KINDS:
                # An event of an unknown type may have a known kind, because the type may end in the
                # name of that kind. Such an event has null in the column of the kind.
                known = others.column(kind).is_valid()
                events = _flatten(others.filter(known), kind)
                yield from self._rows(self._names.prefix + kind, events)
                others = others.filter(pc.invert(known))
            yield from self._rows(self._names.prefix + OTHER_EVENTS, others)

    def _rows(self, table: str, rows: pa.RecordBatch) -> Iterator[tuple[Place, pa.RecordBatch]]:
        if not rows.num_rows:
            return
        schema, partitions = self._schema(table), self._partitions(table)
        added = {each.name: each for each in partitions if each.has_column}
        for partition, inside in divided(rows, partitions):
            arrays = [
                added[name].values(inside) if name in added else self._column(inside, name)
                for name in schema.names
            ]
            yield Place(table, partition), pa.RecordBatch.from_arrays(arrays, schema=schema)

    def _column(self, rows: pa.RecordBatch, name: str) -> pa.Array:
        if name == BATCH_COLUMN and self._batch is not None:
            return pa.repeat(pa.scalar(self._batch, pa.int64()), rows.num_rows)
        return rows.column(name)

    def _schema(self, table: str) -> pa.Schema:
        found = self._schemas.get(table)
        if found is None:
            names = self._names
            names.refuse_many([*self._schemas, table])
            columns = pa.schema(map(fields.bare_field, self._own_columns(table)))
            found = self._schemas[table] = file_columns(columns, self._partitions(table))
        return found

    def _columns_of(self, table: str) -> list[pa.Field]:
        """Return the columns of a table, without the batch number."""
        named = {each.name: each for each in self._layout}
        if table == self._names.dead_letters:
            return [*self._beside, named[ERROR], named[self._raw]]
        if self._format != "advisory":
            return [each for each in self._layout if each.name not in {ERROR, self._raw}]
        kind = table.removeprefix(self._names.prefix)
        if kind == OTHER_EVENTS:
            return [named[_KIND], named[EXTRA], *self._beside]
        return [*_members(kind), named[EXTRA], *self._beside]


def _flatten(rows: pa.RecordBatch, kind: str) -> pa.RecordBatch:
    """Replace the struct column of events with one column for each member; return the rows.

    The columns with the parts of the message are kept.
    """
    beside = [name for name in rows.schema.names if name not in EVENT_COLUMNS.names]
    arrays = [*rows.column(kind).flatten(), *(rows.column(name) for name in beside)]
    names = [*(each.name for each in _members(kind)), *beside]
    return pa.RecordBatch.from_arrays(arrays, names)


def _members(kind: str) -> pa.StructType:
    members = EVENT_COLUMNS.field(kind).type
    assert isinstance(members, pa.StructType)
    return members

"""Change Iceberg tables by commits that are carried out on one state of a table, or refused."""

from __future__ import annotations

import time
from collections.abc import Callable
from pathlib import Path
from typing import Final, TypeVar

import pyarrow as pa
from pyiceberg.exceptions import CommitFailedException
from pyiceberg.schema import Schema
from pyiceberg.table import Table, Transaction
from pyiceberg.table.metadata import TableMetadata

from twinstream.core.deadline import Backoff
from twinstream.lake.errors import StorageError
from twinstream.lake.iceberg.columns import Unrepresentable, arrow_columns, iceberg_columns
from twinstream.lake.iceberg.errors import CATALOG_ERRORS, catalog_error, cause_of, is_refusal
from twinstream.lake.iceberg.retention import trim
from twinstream.lake.iceberg.tables import NO_RETRIES, IcebergTables
from twinstream.spark.errors import SchemaError
from twinstream.spark.landing.table_fit import check_columns, has_all
from twinstream.spark.pipeline.tables.iceberg_fit import (
    refuse_renamed,
    refuse_unfit,
    refuse_unmapped,
)
from twinstream.spark.pipeline.tables.iceberg_partitions import refuse_other_partitions, spec_of

__all__ = [
    "add_columns",
    "add_snapshot",
    "changed",
    "created",
    "iceberg_schema",
    "transaction_on",
]

_T = TypeVar("_T")

# Attempts to commit. Each fails only if another program has committed in the same moment.
_TRIES: Final = 100

# Attempts after requests of which it is unknown whether they were carried out, and the pauses
# between them in seconds.
_DOUBTS: Final = 5
_PAUSES: Final = Backoff(0.2, 5.0)


def iceberg_schema(table: str, columns: pa.Schema) -> Schema:
    """Return columns as Iceberg has them. Raises `SchemaError` for one that it cannot have."""
    try:
        found = iceberg_columns(columns)
        _ = found.column_names  # pyiceberg builds the index of the names here, and checks them
        return found
    except ValueError as error:
        raise SchemaError(
            f"the table {Path(table).name} cannot have two columns with the same name and dots"
            f" ({error}); leave one of them out of the schema (it is kept in _extra)"
        ) from None
    except Unrepresentable as error:
        raise SchemaError(
            f"{error}, so the table {Path(table).name} cannot have it; leave it out of the schema"
            " (it is kept in _extra), or give it another type"
        ) from None


def created(tables: IcebergTables, table: str, columns: pa.Schema) -> Table:
    """Return a table that is created, even if the answers of the catalog are lost."""
    schema = iceberg_schema(table, columns)
    spec = spec_of(columns, schema)
    for attempt in range(1, _DOUBTS + 1):
        try:
            return tables.create(table, schema, spec)
        except StorageError as error:
            if is_refusal(error.__cause__):
                raise
            time.sleep(_PAUSES.pause(attempt))
    return tables.create(table, schema, spec)


def transaction_on(table: Table) -> Transaction:
    """Return a transaction that is carried out on this state of a table, or refused.

    If another program has removed the property that a new table gets, it is set again: without it,
    pyiceberg would commit on a later state. Then raises `CommitFailedException`, because the table
    has a later state.
    """
    if NO_RETRIES.items() - table.properties.items():
        table.transaction().set_properties(NO_RETRIES).commit_transaction()
        raise CommitFailedException("the table has got a property again")
    return _QuickTransaction(table)


class _QuickTransaction(Transaction):
    """A transaction that copies the metadata of its table once for each of its changes.

    pyiceberg copies them at each look, some 20 times, and the copies take most of the CPU time of a
    commit.
    """

    _known: tuple[object, TableMetadata] | None = None

    @property
    def table_metadata(self) -> TableMetadata:
        """The metadata of the table after the changes."""
        if self._known is None or self._known[0] is not self._updates:
            self._known = self._updates, super().table_metadata
        return self._known[1]


def changed(tables: IcebergTables, name: str, change: Callable[[Table], _T]) -> _T:
    """Return the result of a call that has changed a table, or has found it changed.

    It is called with the newest state of the table again, if another program has committed since,
    and if it is unknown whether its commit was carried out.
    """
    doubts = 0
    for left in reversed(range(_TRIES)):
        # A commit on an older state fails, so the first attempt needs no newer one.
        is_first = left == _TRIES - 1
        found = tables.opened(name) if is_first else tables.open(name)
        tables.check()
        if found is None:
            raise StorageError(f"the table {tables.name(name)} was removed; restore it")
        try:
            return change(found)
        except CommitFailedException as error:
            if not left:
                raise StorageError(
                    f"cannot change the table {tables.name(name)}: other programs have changed it"
                    f" at each of {_TRIES} attempts ({error}); let them pause"
                ) from error
        except (StorageError, *CATALOG_ERRORS) as error:
            doubts += 1
            if doubts > _DOUBTS or is_refusal(error):
                if isinstance(error, StorageError):
                    raise
                what = f"cannot change the table {tables.name(name)}"
                raise catalog_error(tables.settings, what, error) from cause_of(error)
            time.sleep(_PAUSES.pause(doubts))
    raise RuntimeError(f"table {name} changes without an end")


def add_columns(name: str, transaction: Transaction, columns: pa.Schema) -> None:
    """Add the columns that a table lacks. Raises `SchemaError` if the others do not fit it.

    It also raises the error if the columns have other partitions.
    """
    metadata = transaction.table_metadata
    refuse_other_partitions(name, metadata, columns)
    known = arrow_columns(metadata.schema())
    check_columns(Path(name).name, known, columns)
    refuse_unfit(name, metadata, columns)
    wanted = iceberg_schema(name, columns)
    if not has_all(known, columns):
        refuse_renamed(name, metadata, wanted)
        with transaction.update_schema() as update:
            update.union_by_name(wanted)
    refuse_unmapped(name, transaction.table_metadata, wanted)


def add_snapshot(table: Table) -> None:
    """Commit a snapshot with the same files, so that commits on this state of a table fail."""
    transaction = transaction_on(table)
    with transaction.update_snapshot().fast_append():
        pass
    trim(transaction)
    transaction.commit_transaction()

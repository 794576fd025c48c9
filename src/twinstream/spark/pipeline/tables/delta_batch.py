"""Add the files of a batch to Delta tables, each in one transaction.

The transaction contains the ID of the source and the number of the batch as Delta's application
transaction. If a batch is landed again after a crash, this number is found in the table, and the
table stays as it is.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence
from pathlib import Path
from typing import Final

import pyarrow as pa
import pyarrow.compute as pc
from deltalake import CommitProperties, DeltaTable, Transaction
from deltalake.exceptions import CommitFailedError

from twinstream.lake.objects.folder import ObjectFolder
from twinstream.lake.task_report import TaskFile
from twinstream.spark.landing.outputs import DATA, LakeOutput
from twinstream.spark.landing.staging import Written
from twinstream.spark.pipeline.tables.delta_columns import fitting
from twinstream.spark.pipeline.tables.delta_log import action_table, add_action, logged_file
from twinstream.spark.pipeline.tables.delta_place import DeltaPlace
from twinstream.spark.pipeline.tables.sink import Writer

__all__ = ["DOUBTS", "TRIES", "DeltaBatch"]

TRIES: Final = 100
"""Attempts to commit. Each fails only if another program has committed in the same moment."""

DOUBTS: Final = 5
"""Attempts after commits of which it is unknown whether they were stored."""


class DeltaBatch:
    """The writer of one batch. Each Delta table gets the files of the batch in one transaction."""

    def __init__(
        self,
        place: DeltaPlace,
        number: int,
        writer: Writer,
        check: Callable[[], None] = lambda: None,
    ) -> None:
        self._place: Final = place
        self._check: Final = check
        self._number: Final = number
        self._writer: Final = writer
        self._name: Final = f"{writer.name}-{number:09d}-"
        self._attempt: Final = place.files(writer.name, self._name)
        self._written: list[Written] = []

    @property
    def folder(self) -> Path | LakeOutput:
        """Where tasks write the files of the batch."""
        return self._attempt.folder

    def prepared(
        self,
        tables: Sequence[str],
        columns: Callable[[str], pa.Schema],
        earlier: Collection[str] = (),
    ) -> Path | LakeOutput:
        """Return where tasks write the files of the batch."""
        return self.folder

    @property
    def lake(self) -> ObjectFolder | None:
        """The lake of the tables if it is on an object store."""
        return self._place.lake

    def existing(self, prefix: str) -> list[str]:
        """Return the tables of the lake whose names begin with a prefix."""
        return self._place.existing(prefix)

    def found(self, table: str) -> Written | None:
        """Return the files of the batch that the table already has, or `None` without the batch."""
        delta = self._place.open(table)
        if delta is None or not self._is_in(table, delta):
            return None
        return self._place.written(table, self._files(delta, table), is_earlier=True)

    def put(self, table: str, files: Sequence[TaskFile], columns: pa.Schema) -> Written:
        """Add the files of the batch to a table, unless the table already has the batch.

        Return the files of the batch in the table. Raises `SchemaError` if `columns` or their
        partitions do not fit the table.
        """
        moved: list[TaskFile] | None = None
        doubts = 0
        for left in reversed(range(TRIES)):
            # A commit on an older version fails, so the first attempt needs no newer one.
            is_first = left == TRIES - 1
            delta = self._place.opened(table) if is_first else self._place.open(table)
            if delta is not None and self._is_in(table, delta):
                return self._wrote(table, delta, moved)
            before = -1 if delta is None else delta.version()
            try:
                delta = fitting(delta, table, columns, files, self._place, self._check)
                if self._is_in(table, delta):
                    continue  # another driver has added the batch since
                if moved is None:
                    moved = self._attempt.into(table, files)
                self._check()
                self._commit(table, delta, moved)
            except CommitFailedError:
                if not left:
                    raise
                continue  # another program has committed since
            except self._place.doubtful as error:
                doubts += 1
                if doubts > DOUBTS:
                    raise self._place.failed(table, error) from error
                continue
            self._place.settle(table, before + 1, delta.version())
            return self._wrote(table, delta, moved)
        raise RuntimeError(f"table {table} changes without an end")

    def _wrote(self, table: str, delta: DeltaTable, moved: Sequence[TaskFile] | None) -> Written:
        """Note and return the files of the batch in the table.

        They are those of an earlier attempt, or of another driver, if they are not `moved`.
        """
        found = self._files(delta, table)
        own = None if moved is None else {each.path for each in moved}
        is_earlier = own != {each.path for each in found}
        written = self._place.written(table, found, is_earlier=is_earlier)
        self._written.append(written)
        return written

    @property
    def written(self) -> Sequence[Written]:
        """The files of the batch, one item for each call of `put`."""
        return self._written

    def close(self) -> None:
        """Remove the files of the batch that are in no folder of a table.

        If files are in the folder of a table and the transaction failed, a vacuum removes them.
        """
        self._attempt.close()

    def _is_in(self, table: str, delta: DeltaTable) -> bool:
        return self._place.landed(table, delta, self._writer.id) >= self._number

    def _commit(self, table: str, delta: DeltaTable, files: Sequence[TaskFile]) -> None:
        """Commit the files on exactly the version of the table that `delta` is.

        A commit on a later version, which may have the batch, would add the batch twice. Raises
        `CommitFailedError` if another program has committed since.
        """
        version = delta.version() + 1
        delta.create_write_transaction(
            list(map(add_action, files)),
            "append",
            delta.schema(),
            commit_properties=CommitProperties(
                custom_metadata={"source": self._writer.name, "batch": str(self._number)},
                max_commit_retries=0,
                app_transactions=[Transaction(self._writer.id, self._number)],
            ),
        )
        delta.update_incremental()
        if delta.version() == version:
            self._place.committed(table, self._writer.id, self._number, version)

    def _files(self, delta: DeltaTable, table: str) -> list[TaskFile]:
        """Return the files of the batch as the log of the table describes them, sorted."""
        added = action_table(delta)
        found = added.filter(pc.starts_with(added.column("path"), f"{DATA}/{self._name}"))
        files = [logged_file(table, each, self._writer.seq) for each in found.to_pylist()]
        return sorted(files, key=lambda each: each.path)

"""Delta tables in a lake on an object store.

Tasks write the files of a batch where they stay, and the log of a table names them. A commit is a
PUT that the server refuses if the log has the version already. If its answer was lost, the newest
version of the table shows whether the commit was stored.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from contextlib import AbstractContextManager, nullcontext
from functools import partial
from pathlib import Path
from typing import Final, TypeVar

from attrs import evolve, frozen
from deltalake import DeltaTable, Schema
from deltalake.exceptions import CommitFailedError, DeltaError, TableNotFoundError

from twinstream.lake.objects.client import delta_options
from twinstream.lake.objects.errors import requests, storage_error
from twinstream.lake.objects.folder import ObjectFolder
from twinstream.lake.task_report import TaskFile
from twinstream.spark.landing.outputs import LakeOutput
from twinstream.spark.landing.staging import Written
from twinstream.spark.pipeline.tables.delta_place import BatchFiles, last_batch

__all__ = ["ObjectDelta"]

_T = TypeVar("_T")

# Commits between two checkpoints of a table's log. A driver that opens the table reads each commit
# since the last checkpoint, with two requests.
_CHECKPOINT: Final = 20


@frozen
class _Opened:
    table: DeltaTable
    options: dict[str, str]


@frozen
class _LakeFiles:
    """Files in the folders of their tables. Those of failed attempts stay until a vacuum."""

    folder: LakeOutput

    def into(self, table: str, files: Sequence[TaskFile]) -> list[TaskFile]:
        return [evolve(each, path=each.path.relative_to(table)) for each in files]

    def close(self) -> None:
        pass


class ObjectDelta:
    """The Delta tables in a lake. Each is opened once, and then kept up to date."""

    doubtful: tuple[type[Exception], ...] = (OSError, DeltaError)

    def __init__(self, lake: ObjectFolder) -> None:
        self.lake: ObjectFolder | None = lake
        self._lake: Final = lake
        self._opened: Final[dict[str, _Opened]] = {}
        self._landed: Final[dict[tuple[str, str], tuple[int, int]]] = {}

    def existing(self, prefix: str) -> list[str]:
        """Return the folders of the lake whose names begin with a prefix."""
        import obstore

        with requests(self._lake, "list", "") as client:
            found = obstore.list_with_delimiter(client)
        # Names that begin with the prefix: the server compares only whole parts of a key.
        names = (each.rstrip("/").rpartition("/")[2] for each in found["common_prefixes"])
        return sorted(name for name in names if name.startswith(prefix))

    def open(self, table: str) -> DeltaTable | None:
        """Return the newest version of a table, or `None` if there is none.

        Raises `StorageError` if the server refuses a request or does not answer.
        """
        # Until it is up to date again, a table does not count as opened.
        options, opened = delta_options(self._lake.storage), self._opened.pop(table, None)
        try:
            if opened is not None and opened.options == options:
                found = opened.table
                self._asked("read", table, found.update_incremental)
            else:
                url = str(self._lake / table)
                open_it = partial(DeltaTable, url, storage_options=options)
                found = self._asked("read", table, open_it)
        except TableNotFoundError:
            return None
        self._opened[table] = _Opened(found, options)
        return found

    def opened(self, table: str) -> DeltaTable | None:
        """Return the version of a table that was opened last, or else the newest one.

        A commit on an older version fails. So this is enough for a first attempt.
        """
        opened = self._opened.get(table)
        if opened is None or opened.options != delta_options(self._lake.storage):
            return self.open(table)
        return opened.table

    def landed(self, table: str, delta: DeltaTable, source: str) -> int:
        """Return the last batch of a source, by its ID, in a version of a table, or -1.

        deltalake reads each commit since the last checkpoint, so the result is kept.
        """
        version, batch = self._landed.get((table, source), (-1, -1))
        if version != delta.version():
            batch = self._asked("read", table, partial(last_batch, delta, source))
            self._landed[table, source] = delta.version(), batch
        return batch

    def committed(self, table: str, source: str, batch: int, version: int) -> None:
        """Keep the last batch of a source in a version of a table."""
        self._landed[table, source] = version, batch

    def create(
        self, table: str, schema: Schema, partitions: Sequence[str], settings: dict[str, str]
    ) -> DeltaTable:
        """Create a table, unless there is one, and return it.

        Raises errors of deltalake, as a commit does.
        """
        options = delta_options(self._lake.storage)
        found = DeltaTable.create(
            str(self._lake / table),
            schema,
            mode="ignore",
            partition_by=list(partitions),
            configuration={**settings, "delta.checkpointInterval": str(_CHECKPOINT)},
            storage_options=options,
        )
        self._opened[table] = _Opened(found, options)
        return found

    def files(self, writer: str, name: str) -> BatchFiles:
        """Return the files of a new attempt."""
        return _LakeFiles(LakeOutput(self._lake, name))

    def written(
        self, table: str, files: Sequence[TaskFile], *, is_earlier: bool = False
    ) -> Written:
        """Return files of a table, as its log describes them."""
        own = [evolve(each, path=Path(table) / each.path) for each in files]
        return Written.of(table, own, self._lake, is_earlier=is_earlier)

    def settle(self, table: str, first: int, last: int) -> None:
        """Do nothing: what the server has stored is durable."""

    def changed(self, table: str) -> AbstractContextManager[None]:
        """Return a context without effect."""
        return nullcontext()

    def url(self, table: str) -> str:
        """Return the URL of a table."""
        return str(self._lake / table)

    def path(self, table: str, name: str) -> Path:
        """Return the path of a file below the folder of a table, relative to the lake."""
        return Path(table) / name

    def size(self, table: str, name: str) -> int | None:
        """Return the size in bytes of a file below the folder of a table, or `None` without it."""
        import obstore

        with requests(self._lake, "read", f"{table}/{name}") as client:
            try:
                return obstore.head(client, f"{table}/{name}")["size"]
            except FileNotFoundError:
                return None

    def remove(self, table: str, names: Iterable[str]) -> None:
        """Remove files below the folder of a table."""
        import obstore

        with requests(self._lake, "remove", table) as client:
            obstore.delete(client, [f"{table}/{name}" for name in names])

    def failed(self, table: str, error: Exception) -> Exception:
        """Return the error for a commit, or for the creation of the table."""
        return storage_error(self._lake, f"cannot change the table {self._lake / table}", error)

    def _asked(self, verb: str, table: str, call: Callable[[], _T]) -> _T:
        """Return the result of a call, whose errors get the name of the table."""
        try:
            return call()
        except (TableNotFoundError, CommitFailedError):
            raise
        except (OSError, DeltaError) as error:
            what = f"cannot {verb} the table {self._lake / table}"
            raise storage_error(self._lake, what, error) from error

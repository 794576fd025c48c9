"""The Iceberg tables of a lake: open them, create them, and list their files."""

from __future__ import annotations

from collections.abc import Callable
from typing import Final, TypeVar

from pyiceberg.exceptions import (
    NamespaceAlreadyExistsError,
    NoSuchNamespaceError,
    NoSuchTableError,
    TableAlreadyExistsError,
)
from pyiceberg.manifest import DataFile
from pyiceberg.partitioning import PartitionSpec
from pyiceberg.schema import Schema
from pyiceberg.table import Table, TableProperties

from twinstream.lake.errors import JournalError, StorageError, StorageUnusable
from twinstream.lake.iceberg.catalog import LakeCatalog, catalog_properties, open_catalog
from twinstream.lake.iceberg.errors import CATALOG_ERRORS, catalog_error, cause_of
from twinstream.lake.iceberg.settings import CatalogSettings
from twinstream.lake.objects.folder import ObjectFolder, StorageSettings

__all__ = ["NAME_MAPPING", "NO_RETRIES", "IcebergTables", "data_files", "home_of"]

_T = TypeVar("_T")

NO_RETRIES: Final = {TableProperties.COMMIT_NUM_RETRIES: "0"}
"""The property without which pyiceberg commits on a later snapshot if a commit is refused."""

NAME_MAPPING: Final = TableProperties.DEFAULT_NAME_MAPPING
"""The property by which readers find columns in files without the IDs of columns."""

# What a new table gets. Manifests are merged when there are a hundred, and the catalog keeps the
# metadata of so many commits.
_PROPERTIES: Final = {
    **NO_RETRIES,
    TableProperties.FORMAT_VERSION: "2",
    TableProperties.MANIFEST_MERGE_ENABLED: "true",
    TableProperties.METADATA_DELETE_AFTER_COMMIT_ENABLED: "true",
    TableProperties.METADATA_PREVIOUS_VERSIONS_MAX: "100",
}


class IcebergTables:
    """The tables in a namespace of a catalog. Each is loaded once, and then kept up to date."""

    def __init__(
        self,
        settings: CatalogSettings,
        storage: StorageSettings,
        check: Callable[[], None] = lambda: None,
    ) -> None:
        self.settings: Final = settings
        self.check: Final = check
        """Raises an error if the caller may no longer change the tables."""
        self.lake: Final = ObjectFolder.all_buckets(storage)
        """All buckets. The paths of files begin with the name of their bucket."""
        self._storage: Final = storage
        self._catalog: tuple[dict[str, str], LakeCatalog] | None = None
        self._opened: Final[dict[str, Table]] = {}

    def open(self, table: str) -> Table | None:
        """Return the newest state of a table, or `None` if there is none.

        Raises `StorageError` if the catalog refuses a request or does not answer.
        """
        # Until it is up to date again, a table does not count as opened.
        self._opened.pop(table, None)
        catalog, name = self._current(), self._identifier(table)
        try:
            found: Table = self.asked("read", table, lambda: catalog.load_table(name))
        except (NoSuchTableError, NoSuchNamespaceError):
            return None
        self._opened[table] = found
        return found

    def existing(self, prefix: str) -> list[str]:
        """Return the names in the catalog of the tables whose names begin with a prefix."""
        catalog, start = self._current(), self.settings.table_name(prefix)
        namespace = self.settings.namespace
        try:
            found = self.asked("list", f"{prefix}…", lambda: catalog.list_tables(namespace))
        except NoSuchNamespaceError:
            return []
        return sorted(name for *_, name in found if name.startswith(start))

    def opened(self, table: str) -> Table | None:
        """Return the state of a table that was loaded last, or else the newest one.

        A commit on an older state fails. So this is enough for a first attempt.
        """
        self._current()  # renews the credentials, which the table has
        return self._opened.get(table) or self.open(table)

    def create(self, table: str, schema: Schema, spec: PartitionSpec) -> Table:
        """Create a table with partitions, unless there is one, and return it.

        Raises `StorageError` if the catalog refuses a request, or does not answer.
        """
        catalog, name = self._current(), self._identifier(table)
        found: Table | None

        def new() -> Table:
            made: Table = catalog.create_table(
                name, schema, partition_spec=spec, properties=_PROPERTIES
            )
            return made

        def create() -> Table:
            try:
                return new()
            except NoSuchNamespaceError:
                pass
            try:
                catalog.create_namespace(self.settings.namespace)
            except NamespaceAlreadyExistsError:
                pass
            return new()

        try:
            found = self.asked("create", table, create)
        except TableAlreadyExistsError as error:
            found = self.open(table)
            if found is None:
                raise StorageError(
                    f"cannot create the table {self.name(table)}: the catalog {self.settings}"
                    " answered that it exists, and does not have it; run the command again"
                ) from error
        self._opened[table] = found
        return found

    def asked(self, verb: str, table: str, call: Callable[[], _T]) -> _T:
        """Return the result of a call, whose errors get the name of the table.

        Raises `StorageError` for the errors of a catalog that refuses a request, or that does not
        answer.
        """
        try:
            return call()
        except CATALOG_ERRORS as error:
            what = f"cannot {verb} the table {self.name(table)}"
            raise catalog_error(self.settings, what, error) from cause_of(error)

    def name(self, table: str) -> str:
        """Return the name of a table in the catalog, with its namespace."""
        return ".".join(self._identifier(table))

    def _identifier(self, table: str) -> tuple[str, ...]:
        return (*self.settings.namespace, self.settings.table_name(table))

    def _current(self) -> LakeCatalog:
        """Return a client of the catalog with the credentials of now."""
        properties = catalog_properties(self.settings, self._storage)
        if self._catalog is None or self._catalog[0] != properties:
            self._opened.clear()
            opened = open_catalog(self.settings, self._storage, properties)
            self._catalog = properties, opened
        return self._catalog[1]


def home_of(table: Table) -> str:
    """Return the folder of a table, beginning with the name of its bucket.

    Raises `StorageUnusable` for a table that is not on S3.
    """
    scheme, _, place = table.location().partition("://")
    if scheme not in ("s3", "s3a", "s3n"):
        raise StorageUnusable(
            f"the table {'.'.join(table.name())} is at {table.location()}, and a pipeline writes to"
            " S3 only; give the catalog a warehouse on S3, or name another table"
        )
    return place.strip("/")


def data_files(table: Table, wanted: str) -> list[DataFile]:
    """Return the files of a table that may have rows for which the condition `wanted` is true.

    Raises `JournalError` if some of their rows are deleted by files of another program.
    """
    found = list(table.scan(row_filter=wanted).plan_files())
    if any(each.delete_files for each in found):
        raise JournalError(
            f"rows of the table {'.'.join(table.name())} are deleted by delete files, which"
            " another program wrote and Twinstream does not read: rewrite the data files of the"
            " table with that program"
        )
    return [each.file for each in found]

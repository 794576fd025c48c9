"""Remove the objects of Iceberg tables that no snapshot names."""

from __future__ import annotations

import re
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from functools import partial
from typing import Final

from twinstream.lake.iceberg.retention import StoredObject, expire, remove, unnamed
from twinstream.lake.iceberg.tables import home_of
from twinstream.lake.objects.folder import ObjectFolder
from twinstream.spark.landing.outputs import DATA
from twinstream.spark.pipeline.maintenance.leftover import Leftover
from twinstream.spark.pipeline.settings.config import PipelineConfig, SourceConfig
from twinstream.spark.pipeline.settings.folders import Folders
from twinstream.spark.pipeline.state.landed_rows import tables_of
from twinstream.spark.pipeline.state.source_state import journal_of
from twinstream.spark.pipeline.tables.iceberg_batch import last_landed
from twinstream.spark.pipeline.tables.iceberg_change import changed
from twinstream.spark.pipeline.tables.open_sink import iceberg_tables

__all__ = ["iceberg_leftovers", "is_pending"]

_FILE: Final = re.compile(rf"{DATA}/(.+)-(\d{{9,}})-[0-9a-f]+\.parquet", re.ASCII)

# For how long another program may write files until it commits them, metadata included.
_LONGEST: Final = timedelta(days=1)


def iceberg_leftovers(
    config: PipelineConfig,
    source: SourceConfig,
    before: float,
    check: Callable[[], None],
    *,
    dry_run: bool,
) -> list[Leftover]:
    """Remove the objects of a source's tables that no snapshot names, and return them.

    `before` is a time in seconds since 1970. Snapshots that were replaced before this time expire,
    and objects that were stored later stay. `check` is that of the lock of the tables. With
    `dry_run`, nothing is changed. The journal of the source is bundled, which `compact` does for
    other tables.
    """
    journal = journal_of(Folders.of(config.path), source)
    # A driver on another machine may land later batches meanwhile. So the journal is read first.
    newest, time = journal.newest(), datetime.fromtimestamp(before, UTC)
    tables = iceberg_tables(config, check)
    found: list[Leftover] = []
    for table in tables_of(source, journal.entries().values()):
        opened = tables.open(table)
        # Another program may have made a table of this name since.
        if opened is None or last_landed(opened) < 0:
            continue
        if not dry_run:
            opened = changed(tables, table, partial(expire, before=time))
        folder, key = tables.lake.located(home_of(opened))
        home = ObjectFolder(folder.bucket, key, folder.storage)
        objects = tables.asked("read", table, partial(unnamed, opened, home, time))
        due = [each for each in objects if not is_pending(each, source, newest)]
        # No batch was unfinished when the objects were listed, and names of files are unique. So no
        # table will name them, even if the lock is lost now.
        check()
        if not dry_run:
            remove(home, due)
        found += [Leftover(path=home / each.key, bytes=each.size) for each in due]
    if not dry_run:
        check()
        journal.bundle()
    return found


def is_pending(found: StoredObject, source: SourceConfig, newest: int) -> bool:
    """Return whether a commit may be about to name an object.

    That may be a commit of a batch after the newest one in the journal, or of another program.
    """
    match = _FILE.fullmatch(found.key)
    if match is not None and match[1] == source.name:
        return int(match[2]) > newest
    return found.stored > datetime.now(UTC) - _LONGEST

"""Merge the many small files of small batches, and of the journal, into a few large files."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Final

from attrs import frozen

from twinstream.spark.errors import SparkSourceError
from twinstream.spark.landing.batch_folders import batch_folders
from twinstream.spark.landing.partition_rows import partition_of
from twinstream.spark.landing.staging import files_in
from twinstream.spark.pipeline.maintenance.maintenance_lock import maintenance_lock
from twinstream.spark.pipeline.settings.config import PipelineConfig
from twinstream.spark.pipeline.settings.folders import STATE, Folders
from twinstream.spark.pipeline.state.landed_rows import tables_of
from twinstream.spark.pipeline.state.source_state import journal_of
from twinstream.spark.pipeline.tables.open_sink import delta_place
from twinstream.spark.pipeline.tables.parquet_files import Part
from twinstream.spark.pipeline.tables.rebuild import Rebuilt

__all__ = ["TARGET", "Compacted", "all_tables", "compact"]

TARGET: Final = 128 * 1024 * 1024
"""The default target size of a merged file in bytes. Spark reads about this amount in one task."""


@frozen(kw_only=True)
class Compacted:
    """The numbers of files of one table before and after the merge.

    A journal is `_pipeline/` with the name of its source.
    """

    table: str
    before: int
    after: int


def compact(config: PipelineConfig, *, target: int = TARGET) -> Iterator[Compacted]:
    """Merge the files of each table, and yield the numbers of files for each table.

    Then the plans and entries of older batches are bundled in each journal that has enough of them.

    Readers see either the old files or the new files of a table. If a reader has listed the files
    of a Parquet table but has not opened all of them, its query fails and must be repeated.
    Replaced files stay on disk until
    `vacuum` removes them. A running pipeline
    lands no batch until the iteration over the results has ended.

    Args:
        config: the pipeline.
        target: the target size of a merged file in bytes.

    Raises:
        StorageError: if an object store does not answer, or if the lock in it was lost meanwhile.
        CheckpointError: if the tables have a part of an unfinished batch.
        SparkSourceError: for Iceberg tables.
    """
    if config.sink == "iceberg":
        raise SparkSourceError(
            "pipeline compact is not for Iceberg tables: use the maintenance of the catalog, or a"
            " program that rewrites data files, such as Spark with CALL"
            " catalog.system.rewrite_data_files('namespace.table')"
        )
    folders = Folders.of(config.path)
    with maintenance_lock(config, "compact") as held:
        for table in all_tables(config):
            if config.sink == "delta":
                yield from _delta(config, table, target, held.check)
            elif (folders.root / table).is_dir():
                yield from _parquet(folders, table, target)
        for source in config.sources:
            before, after = journal_of(folders, source).bundle()
            if after < before:
                yield Compacted(table=f"{STATE}/{source.name}", before=before, after=after)


def all_tables(config: PipelineConfig) -> list[str]:
    """Return the names of the tables of a pipeline, including the dead letters.

    Some may not exist.
    """
    found: list[str] = []
    for source in config.sources:
        entries = journal_of(Folders.of(config.path), source).entries()
        found += tables_of(source, entries.values())
    return found


def _delta(
    config: PipelineConfig, table: str, target: int, check: Callable[[], None]
) -> Iterator[Compacted]:
    place = delta_place(config)
    from twinstream.spark.pipeline.tables.delta_sink import DeltaSink

    old = place.open(table)
    if old is None:
        return
    before = len(old.file_uris())
    DeltaSink(place, check).compact(table, target)
    new = place.open(table)
    yield Compacted(table=table, before=before, after=0 if new is None else len(new.file_uris()))


def _parquet(folders: Folders, table: str, target: int) -> Iterator[Compacted]:
    batches = batch_folders(folders.root / table)
    files = {number: files_in(folder) for number, folder in batches.items()}
    groups = list(_groups(files, target))
    before = sum(map(len, files.values()))
    if any(_has_more(files, group) for group in groups):
        with Rebuilt(folders, table) as new:
            for group in groups:
                if _has_more(files, group):
                    new.put(group[-1], [Part([f for number in group for f in files[number]])])
                else:
                    new.keep(batches[number] for number in group)
    after = sum(len(files_in(folder)) for folder in batch_folders(folders.root / table).values())
    yield Compacted(table=table, before=before, after=after)


def _groups(files: dict[int, tuple[Path, ...]], target: int) -> Iterator[list[int]]:
    """Yield groups of consecutive batches, each with at most `target` bytes in a partition.

    A batch with more than `target` bytes is a group of its own.
    """
    group: list[int] = []
    sizes = Counter[str]()
    for number, inside in files.items():
        own = Counter[str]()
        for file in inside:
            own[partition_of(file)] += file.stat().st_size
        if group and max((sizes + own).values(), default=0) > target:
            yield group
            group, sizes = [], Counter[str]()
        group.append(number)
        sizes += own
    if group:
        yield group


def _has_more(files: dict[int, tuple[Path, ...]], group: list[int]) -> bool:
    """Return whether a partition has several files in a group of batches."""
    found = Counter(partition_of(file) for number in group for file in files[number])
    return any(count > 1 for count in found.values())

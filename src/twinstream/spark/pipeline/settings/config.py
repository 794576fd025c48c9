"""The validated configuration of a pipeline: streams, tables, folder and interval."""

from __future__ import annotations

import re
from collections.abc import Mapping
from pathlib import Path
from typing import Final, Literal, TypeAlias

from attrs import evolve, field, frozen

from twinstream.lake.iceberg.settings import CatalogSettings
from twinstream.lake.objects.folder import ObjectFolder
from twinstream.spark.bucket.location import with_prefix
from twinstream.spark.landing.file_settings import FileSettings
from twinstream.spark.landing.partitions import Partition
from twinstream.spark.landing.split_tables import DEAD_LETTERS, TableNames
from twinstream.spark.landing.token_tables import MAX_TABLES
from twinstream.spark.source.columns import MessageColumns
from twinstream.spark.source.options import SourceOptions, ValueFormat

__all__ = [
    "NAME",
    "CommitMode",
    "EngineKind",
    "PipelineConfig",
    "Restarts",
    "SinkKind",
    "SourceConfig",
]

EngineKind: TypeAlias = Literal["spark", "local"]
SinkKind: TypeAlias = Literal["parquet", "delta", "iceberg"]
CommitMode: TypeAlias = Literal["none", "bookmark", "purge"]

NAME: Final = re.compile(r"[A-Za-z0-9][A-Za-z0-9_-]{0,99}", re.ASCII)
"""Valid names of pipelines, sources and tables. They become names of folders."""


@frozen(kw_only=True)
class SourceConfig:
    """One source of a pipeline: a stream, its tables and its options.

    `options` are all options of the `jetstream` source, including connection and stream, as
    text.
    """

    name: str
    """Name of the source and of its folders; by default the stream's name."""
    stream: str
    bucket: str | None = None
    """Name of the key-value bucket whose changes are landed, or `None` for a stream. `stream` is
    the bucket's stream then."""
    key_prefix: str | None = None
    """The part of a bucket's stored subjects that precedes the key, see `located_source`. Without
    it, the options have no filters of keys."""
    format: ValueFormat = "raw"
    table: str = ""
    """Name of the table for the source's messages. It is empty for advisories, which have one table
    per kind of event. With a `token`, it is the prefix of the names of the tables."""
    token: int = 0
    """The number of the token of the subject, from 1, whose values have a table each; 0 for one
    table."""
    max_tables: int = MAX_TABLES
    """The largest number of tables by a token."""
    prefix: str = ""
    """Prefix of the names of the tables for advisories."""
    start: str | int = "earliest"
    """Where the first batch of the source begins: `earliest`, `latest`, a sequence, or a time as
    the option `startingTimestamp` takes it."""
    commit: CommitMode = "none"
    """How a committed batch releases its messages: not at all, by moving the bookmark, or by a
    purge of the stream."""
    bookmark: str = ""
    """Name of the consumer that marks the progress in the stream with `commit = "bookmark"`."""
    subjects: tuple[str, ...] = ()
    """Subject filters of the source; empty for all messages."""
    partitions: tuple[Partition, ...] = ()
    """The partitions of the source's tables, without the dead letters."""
    files: FileSettings = field(factory=FileSettings)
    renames: Mapping[str, str] = field(factory=dict[str, str])
    """The new name of each column, by its old name, which old producers still use."""
    options: Mapping[str, str] = field(factory=dict[str, str], repr=False)

    @property
    def source_options(self) -> SourceOptions:
        """The parsed and validated options. Raises `OptionError` for an invalid option."""
        parsed = SourceOptions.parse(self.options)
        parsed = evolve(parsed, renames=tuple(self.renames.items()))
        return parsed if self.key_prefix is None else with_prefix(parsed, self.key_prefix)

    @property
    def filter(self) -> str:
        """The source's subjects, separated by commas as in offsets; empty for all messages."""
        return ",".join(self.source_options.subjects)

    @property
    def dead_letters(self) -> str:
        """Folder of the source's dead letters, below the pipeline's folder."""
        return f"{DEAD_LETTERS}/source={self.name}"

    @property
    def tables(self) -> TableNames:
        """The names of the source's tables."""
        return TableNames(
            table=self.table,
            dead_letters=self.dead_letters,
            prefix=self.prefix,
            token=self.token,
            max_tables=self.max_tables,
            partitions=self.partitions,
            files=self.files,
        )

    @property
    def columns(self) -> MessageColumns:
        """The names of the columns that identify the message of a row."""
        return MessageColumns.of(self.format, is_bucket=self.bucket is not None)

    @property
    def seq_column(self) -> str:
        """The name of the column with the sequence of the message."""
        return self.columns.seq

    @property
    def time_column(self) -> str:
        """The name of the column with the time at which the stream stored the message."""
        return self.columns.time


@frozen(kw_only=True)
class Restarts:
    """The settings for restarts of a failed source.

    The pause before a restart is `first` seconds. It doubles with each restart, up to
    `longest`.
    """

    first: float = 1.0
    longest: float = 60.0
    most: int | None = None
    """The maximum number of successive restarts without a landed batch. `None` means 5 with
    `--once`, and no limit otherwise."""


@frozen(kw_only=True)
class PipelineConfig:
    """The configuration of a pipeline."""

    name: str
    path: Path | ObjectFolder
    """Absolute path of the folder with the tables, or a folder of an object store."""
    sources: tuple[SourceConfig, ...]
    sink: SinkKind = "parquet"
    catalog: CatalogSettings | None = None
    """The catalog of Iceberg tables."""
    engine: EngineKind = "spark"
    """What runs the tasks of a batch: Spark, or processes of this machine."""
    every: float = 10.0
    """Seconds between the starts of two batches."""
    master: str = "local[*,4]"
    settings: Mapping[str, str] = field(factory=dict[str, str])
    """Other settings of the Spark session."""
    restarts: Restarts = Restarts()

    def source(self, name: str) -> SourceConfig:
        """Return the source with a name. Raises `KeyError` if there is no such source."""
        for each in self.sources:
            if each.name == name:
                return each
        raise KeyError(name)

"""The checked configuration of a pipeline: streams, tables, folder and interval."""

from __future__ import annotations

import re
from collections.abc import Mapping
from pathlib import Path
from typing import Final, Literal, TypeAlias

from attrs import field, frozen

from twinstream.spark.landing.split_tables import DEAD_LETTERS, TableNames
from twinstream.spark.source.options import SourceOptions, ValueFormat

__all__ = ["NAME", "CommitMode", "PipelineConfig", "Restarts", "SinkKind", "SourceConfig"]

SinkKind: TypeAlias = Literal["parquet", "delta"]
CommitMode: TypeAlias = Literal["none", "bookmark", "purge"]

NAME: Final = re.compile(r"[A-Za-z0-9][A-Za-z0-9_-]{0,99}", re.ASCII)
"""Names of pipelines, sources and tables, which become names of folders."""


@frozen(kw_only=True)
class SourceConfig:
    """One stream of a pipeline.

    ``options`` are those of the ``jetstream`` source as text, connection and stream included.
    """

    name: str
    """Name for the source's state and dead letters; by default the stream's name."""
    stream: str
    format: ValueFormat = "raw"
    table: str = ""
    """Table of the source's rows; unused for advisories, which have one table per kind."""
    prefix: str = ""
    """Prefix of the tables of advisories."""
    start: str | int = "earliest"
    """Where the first run of the source begins: ``earliest``, ``latest`` or a sequence."""
    commit: CommitMode = "none"
    """What is done to the stream after a batch: nothing, a bookmark, or a purge."""
    bookmark: str = ""
    """Name of the consumer that shows the progress."""
    subjects: tuple[str, ...] = ()
    options: Mapping[str, str] = field(factory=dict[str, str], repr=False)

    @property
    def source_options(self) -> SourceOptions:
        """The parsed and checked options. Raises `OptionError`."""
        return SourceOptions.parse(self.options)

    @property
    def filter(self) -> str:
        """The source's subjects in the format of offsets: separated by commas, empty for all."""
        return ",".join(self.source_options.subjects)

    @property
    def dead_letters(self) -> str:
        """Folder of the source's dead letters, below the pipeline's folder."""
        return f"{DEAD_LETTERS}/source={self.name}"

    @property
    def tables(self) -> TableNames:
        """The names of the source's tables."""
        return TableNames(table=self.table, dead_letters=self.dead_letters, prefix=self.prefix)

    @property
    def seq_column(self) -> str:
        """Column with the sequence of the message."""
        return "seq" if self.format == "raw" else "_seq"

    @property
    def time_column(self) -> str:
        """Column with the time at which the stream stored the message."""
        return "timestamp" if self.format == "raw" else "_timestamp"


@frozen(kw_only=True)
class Restarts:
    """Restarts of a failed query. Pauses are in seconds and double each time."""

    first: float = 1.0
    longest: float = 60.0
    most: int | None = None
    """Restarts in a row without a batch between; ``None``: 5 with ``--once``, else no limit."""


@frozen(kw_only=True)
class PipelineConfig:
    """A whole pipeline."""

    name: str
    path: Path
    """Folder of the tables, absolute."""
    sources: tuple[SourceConfig, ...]
    sink: SinkKind = "parquet"
    every: float = 10.0
    """Seconds between the starts of two batches."""
    master: str = "local[*,4]"
    settings: Mapping[str, str] = field(factory=dict[str, str])
    """Further settings of Spark."""
    restarts: Restarts = Restarts()

    def source(self, name: str) -> SourceConfig:
        """Return a source by its name. Raises `KeyError`."""
        for each in self.sources:
            if each.name == name:
                return each
        raise KeyError(name)

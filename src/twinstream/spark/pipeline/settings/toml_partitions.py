"""Parse the partitions and the files of a source, and check them against its kind of tables."""

from __future__ import annotations

import re
from collections.abc import Sequence
from functools import reduce
from typing import Final

import pyarrow as pa
from attrs import evolve

from twinstream.spark.errors import ConfigError, OptionError
from twinstream.spark.landing.file_settings import FILE_SIZE, MAX_PARTITIONS, FileSettings
from twinstream.spark.landing.partitions import TIME_TRANSFORMS, Partition, parse_partitions
from twinstream.spark.landing.split_tables import TableSplit
from twinstream.spark.pipeline.settings.config import PipelineConfig, SourceConfig
from twinstream.spark.pipeline.settings.toml_table import TomlTable

__all__ = ["files_of", "in_catalog", "partitions_of", "refuse_partitions"]

_IN_CATALOGS: Final = re.compile("[a-z0-9_]+")

# The possible sizes of a file. An object of a store with S3 has at most 10,000 parts.
_SIZES: Final = (1024 * 1024, 10 * 1024 * 1024 * 1024)


def partitions_of(table: TomlTable, source: SourceConfig) -> tuple[Partition, ...]:
    """Return the partitions of the source's tables. Raises `ConfigError` for an invalid item."""
    texts = table.texts("partition_by")
    if not texts:
        return ()
    names = source.columns
    try:
        return parse_partitions(texts, _columns(source), names.subject, names.seq)
    except OptionError as error:
        raise table.fail(error.option, error.reason) from error


def files_of(
    table: TomlTable, source: SourceConfig, partitions: tuple[Partition, ...]
) -> FileSettings:
    """Return the settings of the source's files. Raises `ConfigError` for an invalid one."""
    bounds = table.texts("bounds")
    columns = _columns(source) if bounds else pa.schema([])
    names = {each.name for each in partitions}
    for name in bounds:
        if name not in columns.names:
            able = ", ".join(each.name for each in columns if _has_order(each.type))
            raise table.fail("bounds", f"there is no column {name!r}; columns that may be: {able}")
        if name in names:
            raise table.fail(
                "bounds", f"{name!r} is in partition_by, so readers skip by it already"
            )
        if not _has_order(columns.field(name).type):
            raise table.fail(
                "bounds",
                f"column {name!r} is {columns.field(name).type}; bounds are for numbers, texts,"
                " dates and times",
            )
    return FileSettings(
        size=table.size("file_size", FILE_SIZE, _SIZES),
        max_partitions=table.number("max_partitions", MAX_PARTITIONS) or MAX_PARTITIONS,
        bounds=bounds,
    )


def _has_order(kind: pa.DataType) -> bool:
    is_number = pa.types.is_integer(kind) or pa.types.is_floating(kind)
    is_time = pa.types.is_timestamp(kind) or pa.types.is_date(kind)
    return is_number or is_time or kind == pa.string()


def _columns(source: SourceConfig) -> pa.Schema:
    """Return the columns that all tables of the source have, without the dead letters."""
    split = TableSplit(source.source_options, source.tables)
    # All tables by a token have the same columns, whatever their names.
    possible = source.tables.possible(source.format, lambda prefix: [prefix])
    names = [each for each in possible if each != source.dead_letters]
    return reduce(_common, map(split.columns, names))


def _common(one: pa.Schema, other: pa.Schema) -> pa.Schema:
    types = {each.name: each.type for each in other}
    return pa.schema([each for each in one if types.get(each.name) == each.type])


def in_catalog(config: PipelineConfig) -> PipelineConfig:
    """Return the pipeline with the names and the files that tables in a catalog have."""
    sources = (evolve(each, files=evolve(each.files, in_catalog=True)) for each in config.sources)
    return evolve(config, sources=tuple(sources))


def _refuse_two_times(where: str, partitions: Sequence[Partition]) -> None:
    """Raise `ConfigError` for two transforms of the time in one column, which Iceberg refuses."""
    found: dict[str, Partition] = {}
    for each in partitions:
        if each.transform in TIME_TRANSFORMS:
            other = found.setdefault(each.source, each)
            if other is not each:
                raise ConfigError(
                    where,
                    f"{other.text} and {each.text}: an Iceberg table is divided once by the time in"
                    " a column; keep the shorter of both periods, by which readers skip files for"
                    " the longer one, too",
                )


def refuse_partitions(file: str, config: PipelineConfig) -> None:
    """Raise `ConfigError` for partitions, bounds or names that the tables cannot have."""
    for source in config.sources:
        if source.files.bounds and config.sink != "delta":
            raise ConfigError(
                f"{file}: source {source.name}: bounds",
                'are for the log of tables of sink = "delta"; files of Parquet have the bounds of'
                " all columns",
            )
        where = f"{file}: source {source.name}: partition_by"
        if source.token and source.files.in_catalog and not _IN_CATALOGS.fullmatch(source.table):
            raise ConfigError(
                f"{file}: source {source.name}: table",
                f"{source.table!r} is the beginning of names in a catalog, which have only"
                " lower-case letters, digits and '_'; write it so",
            )
        if source.files.in_catalog:
            _refuse_two_times(where, source.partitions)
        for each in source.partitions:
            if config.sink == "parquet" and each.name.startswith("_"):
                raise ConfigError(
                    where,
                    f"{each.text}: readers of Parquet skip folders whose names begin with '_', so"
                    ' such a column cannot name them; set sink = "delta", or use a transform such'
                    " as subject[1]",
                )

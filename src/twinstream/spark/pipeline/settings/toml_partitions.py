"""Parse `partition_by` of a source, and check it against the kind of the tables."""

from __future__ import annotations

from functools import reduce
from typing import Final

import pyarrow as pa

from twinstream.spark.errors import ConfigError, OptionError
from twinstream.spark.landing.partitions import Partition, parse_partitions
from twinstream.spark.landing.split_tables import TableSplit
from twinstream.spark.pipeline.settings.config import PipelineConfig, SourceConfig
from twinstream.spark.pipeline.settings.toml_table import TomlTable

__all__ = ["partitions_of", "refuse_partitions"]

# The kinds of tables that have partitions.
_SINKS: Final = ("parquet", "delta")


def partitions_of(table: TomlTable, source: SourceConfig) -> tuple[Partition, ...]:
    """Return the partitions of the source's tables. Raises `ConfigError` for an invalid item."""
    texts = table.texts("partition_by")
    if not texts:
        return ()
    subject = "subject" if source.format == "raw" else "_subject"
    try:
        return parse_partitions(texts, _columns(source), subject, source.seq_column)
    except OptionError as error:
        raise table.fail(error.option, error.reason) from error


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


def refuse_partitions(file: str, config: PipelineConfig) -> None:
    """Raise `ConfigError` for partitions that the tables of the pipeline cannot have."""
    for source in config.sources:
        where = f"{file}: source {source.name}: partition_by"
        if source.partitions and config.sink not in _SINKS:
            raise ConfigError(
                where, f'tables of sink = "{config.sink}" have no partitions; remove it'
            )
        for each in source.partitions:
            if config.sink == "parquet" and each.name.startswith("_"):
                raise ConfigError(
                    where,
                    f"{each.text}: readers of Parquet skip folders whose names begin with '_', so"
                    ' such a column cannot name them; set sink = "delta", or use a transform such'
                    " as subject[1]",
                )

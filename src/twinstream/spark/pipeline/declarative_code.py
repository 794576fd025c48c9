"""The Python module of a Spark Declarative Pipelines project, as text."""

from __future__ import annotations

import keyword
from collections.abc import Iterator
from typing import Final

from twinstream.spark.errors import ConfigError
from twinstream.spark.pipeline.settings.config import PipelineConfig, SourceConfig
from twinstream.spark.source.read_columns import ERROR

__all__ = ["code_of", "schema_file"]

_HEAD: Final = '''\
"""Streams of the pipeline {name} as streaming tables. Written by `twinstream pipeline spec`."""

from pathlib import Path

from pyspark import pipelines as dp
from pyspark.sql import DataFrame, SparkSession

PROJECT = Path(__file__).parents[1]


def read(**options: str) -> DataFrame:
    return SparkSession.active().readStream.format("jetstream").options(**options).load()
'''

_OPTIONS: Final = """

{constant} = {{
{lines}
}}
"""

_RAW: Final = '''

@dp.table(name="{table}")
def {table}() -> DataFrame:
    """All messages, as they are."""
    return read(**{constant})
'''

_TYPED: Final = '''

@dp.table(name="{table}")
def {table}() -> DataFrame:
    """Messages that fit the schema."""
    return read(**{constant}).where("_error IS NULL").drop("_error", "_raw")


@dp.table(name="{table}_dead_letters")
def {table}_dead_letters() -> DataFrame:
    """Messages that do not fit, with the reason and their bytes."""
    columns = {columns}
    return read(**{constant}).where("_error IS NOT NULL").select(*columns)
'''


def code_of(config: PipelineConfig) -> str:
    """Return the text of the Python module for a pipeline.

    Raises `ConfigError` if the name of a table is not a valid Python name, or if the names of two
    tables are equal, ignoring case, or if a source renames columns.
    """
    taken: set[str] = set()
    for source in config.sources:
        if source.renames:
            raise ConfigError(
                f"source {source.name}: rename",
                "is not possible in a project of Spark, whose tables have the columns of the schema"
                " alone; leave it out, and choose both names in a query",
            )
        for table in _names(source):
            if table.lower() in taken:
                raise ConfigError(
                    f"source {source.name}",
                    f"the project has another table {table!r}; give one of them another name with"
                    " table or, for advisories, prefix",
                )
            taken.add(table.lower())
    return _HEAD.format(name=config.name) + "".join(map(_tables, config.sources))


def schema_file(source: SourceConfig) -> str:
    """Return the path of a source's schema in the project, or an empty text without a schema."""
    return f"schemas/{source.name}.json" if source.format == "json" else ""


def _names(source: SourceConfig) -> list[str]:
    table = source.table or f"{source.prefix}events"
    return [table] if source.format == "raw" else [table, f"{table}_dead_letters"]


def _tables(source: SourceConfig) -> str:
    table = _names(source)[0]
    if not table.isidentifier() or keyword.iskeyword(table):
        raise ConfigError(
            f"source {source.name}", f"table {table!r} cannot be a Python name; use '_' for '-'"
        )
    constant = f"{table.upper()}_OPTIONS"
    head = _OPTIONS.format(constant=constant, lines="\n".join(_options(source)))
    body = _RAW if source.format == "raw" else _TYPED
    return head + body.format(table=table, constant=constant, columns=_letter_columns(source))


def _letter_columns(source: SourceConfig) -> str:
    """Return the columns of dead letters, as Python writes a list of texts."""
    names = source.columns
    found = [names.subject, names.seq, names.time, ERROR, "_raw"]
    if source.bucket is None:
        found.insert(0, "_stream")
    return "[" + ", ".join(f'"{each}"' for each in found) + "]"


def _options(source: SourceConfig) -> Iterator[str]:
    for name, text in {**source.options, **_start(source)}.items():
        value = repr(text)
        if name == "jsonSchema":
            value = f'(PROJECT / "{schema_file(source)}").read_text("utf-8")'
        yield f"    {name!r}: {value},"


def _start(source: SourceConfig) -> dict[str, str]:
    """Return the options of a data frame for the start of a source."""
    match source.start:
        case "earliest" | "latest" as word:
            return {"startingOffsets": word}
        case int(seq):
            return {"startingOffsets": f'{{"{source.bucket or source.stream}": {seq}}}'}
        case time:
            strategy = {"startingOffsetsByTimestampStrategy": "latest"}
            return {"startingTimestamp": time, **strategy}

"""The same streams as a Spark Declarative Pipelines project: a spec file and Python beside it.

``spark-pipelines run`` keeps the tables then, in Spark's catalog and with its own checkpoints.
What only ``twinstream pipeline`` does is left out: bookmarks, purges, the journal and all that
looks after tables. Secrets stay references to environment variables.
"""

from __future__ import annotations

import keyword
from pathlib import Path
from typing import Final

from js_spark.errors import ConfigError
from js_spark.pipeline.config import PipelineConfig, SourceConfig

__all__ = ["SPEC_FILE", "write_project"]

SPEC_FILE: Final = "spark-pipeline.yml"
"""What `spark-pipelines` looks for."""

_SPEC: Final = """\
# Streams of the pipeline {name}. Written by `twinstream pipeline spec`; run it with:
#   spark-pipelines run
name: {name}
storage: {storage}
libraries:
  - glob:
      include: transformations/**
configuration:
  spark.sql.session.timeZone: UTC
"""

_HEAD: Final = '''\
"""Streams of the pipeline {name} as streaming tables. Written by `twinstream pipeline spec`."""

from pyspark import pipelines as dp
from pyspark.sql import DataFrame, SparkSession


def read(**options: str) -> DataFrame:
    return SparkSession.active().readStream.format("jetstream").options(**options).load()
'''

_OPTIONS: Final = """

{constant} = {options}
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
    columns = ["_stream", "_subject", "_seq", "_timestamp", "_error", "_raw"]
    return read(**{constant}).where("_error IS NOT NULL").select(*columns)
'''


def write_project(config: PipelineConfig, folder: Path) -> list[Path]:
    """Write the project into a new or empty folder; return its files.

    Raises `ConfigError` when there is something in the folder, or for a table whose name cannot
    be that of a Python function.
    """
    if folder.exists() and any(folder.iterdir()):
        raise ConfigError(str(folder), "is not empty; name a new folder")
    code = _HEAD.format(name=config.name) + "".join(map(_tables, config.sources))
    files = {
        folder / SPEC_FILE: _SPEC.format(
            name=config.name, storage=(folder.absolute() / "storage").as_uri()
        ),
        folder / "transformations" / "streams.py": code,
    }
    for file, text in files.items():
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(text, "utf-8")
    return list(files)


def _tables(source: SourceConfig) -> str:
    table = source.table or f"{source.prefix}events"
    if not table.isidentifier() or keyword.iskeyword(table):
        raise ConfigError(
            f"source {source.name}", f"table {table!r} cannot be a Python name; use '_' for '-'"
        )
    start = (
        source.start if isinstance(source.start, str) else f'{{"{source.stream}": {source.start}}}'
    )
    options = {**source.options, "startingOffsets": start}
    lines = "".join(f"    {name!r}: {text!r},\n" for name, text in options.items())
    names = {"table": table, "constant": f"{table.upper()}_OPTIONS"}
    body = _RAW if source.format == "raw" else _TYPED
    return _OPTIONS.format(constant=names["constant"], options=f"{{\n{lines}}}") + body.format(
        **names
    )

"""Write the streams of a pipeline as a Spark Declarative Pipelines project: a spec and Python code.

`spark-pipelines run` then manages the tables, in Spark's catalog and with Spark's checkpoints.
The project lacks the features that only `twinstream pipeline` has: bookmarks, purges, the journal
and the maintenance of tables. The project contains no secrets, but only the names of the
environment variables that contain the secrets.
"""

from __future__ import annotations

from pathlib import Path
from typing import Final

from twinstream.spark.errors import ConfigError
from twinstream.spark.landing.tables import local_url
from twinstream.spark.pipeline.declarative_code import code_of, schema_file
from twinstream.spark.pipeline.settings.config import PipelineConfig, SourceConfig

__all__ = ["LOCAL_SETTINGS", "SPEC_FILE", "write_project"]

SPEC_FILE: Final = "spark-pipeline.yml"
"""The file name that `spark-pipelines` looks for."""

LOCAL_SETTINGS: Final = "conf/spark-defaults.conf"
"""The file from which Spark reads its settings with `SPARK_CONF_DIR=conf`."""

# The spec starts one flow at a time. The Python process of a streaming read must start within ten
# seconds, and no setting of Spark changes this limit. If many flows start at the same time on a
# busy machine, their processes exceed the limit.
_SPEC: Final = """\
# Streams of the pipeline {name}. Written by `twinstream pipeline spec`; run it here, on this
# machine alone, or on a Spark Connect server:
#   SPARK_CONF_DIR=conf spark-pipelines run --remote 'local[*,4]'
#   spark-pipelines run --remote sc://HOST
name: "{name}"
storage: "{storage}"
libraries:
  - glob:
      include: transformations/**
configuration:
  spark.sql.session.timeZone: UTC
  # Each flow starts a Python process, and has ten seconds for it.
  spark.sql.pipelines.execution.maxConcurrentFlows: "1"
"""

# These settings are in a file, because the spec may contain only settings that can change while
# Spark runs. The first settings make the catalog persistent. By default, Spark loses its catalog
# when it ends, and the next run fails because the folders of the tables already exist.
_SETTINGS: Final = """\
# Spark on this machine alone, with a catalog that stays. Used with SPARK_CONF_DIR=conf.
spark.sql.catalogImplementation  hive
spark.sql.warehouse.dir  {tables}
spark.hadoop.javax.jdo.option.ConnectionURL  jdbc:derby:;databaseName={catalog};create=true
spark.driver.extraJavaOptions  "-Dderby.stream.error.file={catalog}.log"
spark.driver.host  127.0.0.1
spark.driver.bindAddress  127.0.0.1
spark.connect.grpc.binding.address  127.0.0.1
spark.ui.enabled  false
spark.ui.showConsoleProgress  false
spark.log.level  ERROR
"""


def write_project(config: PipelineConfig, folder: Path) -> list[Path]:
    """Write the project into a new or empty folder, and return the written files.

    Raises `ConfigError` if the folder is not empty, if its path has a character that URLs escape
    (Spark would use another path), if a source has partitions or tables by a token, or if the names
    of tables are refused by `code_of`.
    """
    for source in config.sources:
        if source.token or source.partitions:
            raise ConfigError(
                f"source {source.name}",
                "has partition_by or a table by a token of the subject, which the project cannot"
                " have; write it from a file without them",
            )
    if folder.exists() and any(folder.iterdir()):
        raise ConfigError(str(folder), "is not empty; name a new folder")
    home = folder.absolute()
    if home.as_uri() != local_url(home):
        raise ConfigError(
            str(home),
            "has a space or another character that URLs escape, so Spark would keep its checkpoints"
            " in a folder of another name; use a path without it",
        )
    texts = {
        SPEC_FILE: _SPEC.format(name=config.name, storage=local_url(home / "storage")),
        "transformations/streams.py": code_of(config),
        **dict(map(_schema, filter(schema_file, config.sources))),
        LOCAL_SETTINGS: _SETTINGS.format(
            tables=local_url(home / "tables"), catalog=home / "catalog"
        ),
    }
    for name, text in texts.items():
        file = folder / name
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(text, "utf-8")
    return [folder / name for name in texts]


def _schema(source: SourceConfig) -> tuple[str, str]:
    """Return the file name and the text of a source's schema.

    The project has a copy of the schema, because Spark's machine may not have the original file.
    """
    return schema_file(source), source.options["jsonSchema"]

"""Land JetStream streams: write their messages as rows of typed tables, once or continuously.

- `land` lands the new messages of one stream as one batch of Parquet files, from your own
  program; `summary` counts the rows of a landed table;
- `read_config` reads the configuration file of `twinstream pipeline`. The function
  `run` runs the configured pipeline. It lands several streams at the same time in Parquet, Delta
  or Iceberg tables, with dead letters and a journal of the batches. Each message is landed exactly
  once, even after crashes;
- the modules `verify`, `replay`, `compact` and `vacuum` maintain the tables;
- the modules in `letters` count, land and publish messages that did not match their schema.
"""

from __future__ import annotations

from twinstream.spark.landing.report import LandReport, SubjectSummary
from twinstream.spark.pipeline.batch import land, summary
from twinstream.spark.pipeline.settings.config import PipelineConfig, SourceConfig
from twinstream.spark.pipeline.settings.toml_config import read_config

__all__ = [
    "LandReport",
    "PipelineConfig",
    "SourceConfig",
    "SubjectSummary",
    "land",
    "read_config",
    "summary",
]

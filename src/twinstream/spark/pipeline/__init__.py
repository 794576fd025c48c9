"""Land JetStream streams as typed tables, once or continuously.

- :func:`land` lands the new messages of one stream as one batch of Parquet files, from your own
  program; :func:`summary` counts a landed table;
- :func:`read_config` reads the configuration of ``twinstream pipeline``, and :class:`Pipeline` runs
  it: several streams at once, Parquet or Delta tables, dead letters and a journal of the batches,
  exactly once, also after crashes;
- :func:`verify`, :func:`replay`, :func:`compact` and :func:`vacuum` maintain the tables.
"""

from __future__ import annotations

from twinstream.spark.landing.report import LandReport, SubjectSummary
from twinstream.spark.pipeline.batch import land, summary
from twinstream.spark.pipeline.config import PipelineConfig, SourceConfig
from twinstream.spark.pipeline.toml_config import read_config

__all__ = [
    "LandReport",
    "PipelineConfig",
    "SourceConfig",
    "SubjectSummary",
    "land",
    "read_config",
    "summary",
]

"""Land JetStream streams as typed tables, once or for good.

- :func:`land` lands what is new in one stream as one batch of Parquet, inside a program of one's
  own; :func:`summary` counts a landed table;
- :func:`read_config` reads what ``twinstream pipeline`` runs, and :class:`Pipeline` runs it:
  several streams at once, Parquet or Delta tables, dead letters and a journal of the batches,
  exactly once, over crashes;
- :func:`verify`, :func:`replay`, :func:`compact` and :func:`vacuum` look after the tables.
"""

from __future__ import annotations

from twinstream.spark.pipeline.batch import land, summary
from twinstream.spark.pipeline.config import PipelineConfig, SourceConfig
from twinstream.spark.pipeline.toml_config import read_config
from twinstream.spark.landing.report import LandReport, SubjectSummary

__all__ = [
    "LandReport",
    "PipelineConfig",
    "SourceConfig",
    "SubjectSummary",
    "land",
    "read_config",
    "summary",
]

"""Land JetStream streams as Parquet tables.

One call of :func:`land` moves what is new in a stream into tables below one folder::

    path/
      <table>/batch_id=0/part-….parquet     one folder a table, one folder a batch
      dead_letters/batch_id=0/…             messages that do not fit their schema, with the reason
      journal/batch_id=0.json               what each batch read and wrote

A batch appears by one rename a table, and the journal entry is its commit. Calling again
continues where the last batch ended; a batch that was interrupted is finished with the same
bounds, so nothing is landed twice and nothing is left out.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

from js_spark.report import LandReport, SubjectSummary

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


def land(
    spark: SparkSession,
    *,
    servers: str,
    stream: str,
    path: str,
    table: str | None = None,
    subject: str | None = None,
    value_format: str = "raw",
    json_schema: str | None = None,
    options: Mapping[str, str] | None = None,
) -> LandReport:
    """Land what is new in ``stream`` below ``path`` as one batch, and say what was landed.

    ``value_format`` is ``raw`` (payload as bytes), ``json`` (typed columns after ``json_schema``:
    JSON text or the path of a file) or ``advisory`` (one typed table for each kind of event).
    ``table`` names the table, by default the stream's name in lower case; with ``advisory`` each
    kind has its own (``max_deliver``, ``stream_action``, …). ``options`` are further options of
    the ``jetstream`` source, for example ``nats.user`` or ``minPartitions``.
    """
    raise NotImplementedError


def summary(spark: SparkSession, path: str) -> list[SubjectSummary]:
    """Count a landed table by subject, in the order of the subjects.

    ``path`` is the folder of one table, for example ``<path>/orders``.
    """
    raise NotImplementedError

"""Land one stream as Parquet tables, a batch a call.

One call of :func:`land` moves what is new in a stream into tables below one folder::

    path/
      <table>/batch_id=0/part-….parquet             one folder a table, one folder a batch
      dead_letters/source=<stream>/batch_id=0/…     what does not fit its schema, with the reason
      journal/<stream>/batch_id=0.json              what each batch read and wrote

A batch appears by one rename a table, and the journal entry is its commit. Calling again
continues where the last batch ended; a batch that was interrupted is finished with the same
bounds, so nothing is landed twice and nothing is left out. Every reader of Parquet that knows
Hive folders can read the tables, on file systems where renaming a folder is one step (local
disks, HDFS; not object stores).
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Final

from twinstream.errors import BadArgument
from twinstream.core.base.local_path import local_path
from twinstream.spark.errors import OptionError
from twinstream.spark.landing.landing import Landing
from twinstream.spark.source.option_uses import refuse_ends, refuse_limits
from twinstream.spark.source.options import SourceOptions
from twinstream.spark.landing.report import LandReport, SubjectSummary
from twinstream.spark.landing.split_tables import DEAD_LETTERS, FOLDER_COLUMN, refuse_members
from twinstream.spark.landing.tables import local_url

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

__all__ = ["LandReport", "SubjectSummary", "land", "summary"]

_RESERVED: Final = frozenset({DEAD_LETTERS, "journal"})


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
    ``path`` is a folder of the local file system, or ``file:///…``; other schemes such as
    ``s3a://`` are refused. ``table`` names the table, by default the stream's name in lower case;
    with ``advisory`` each kind has its own (``max_deliver``, ``stream_action``, …). ``options`` are
    further options of the ``jetstream`` source, for example ``nats.user`` or ``minPartitions``;
    ``startingOffsets`` holds for the first batch only, and cannot be ``latest``.

    Raises `OptionError`, `SchemaError` (also for a member ``batch_id``, which readers take from the
    folders), `PipelineBusy` while somebody else lands the stream below ``path``, `JournalError` for
    a table that has rows of another stream, and `DataLossError` when messages went before they were
    landed or the stream was deleted and made again, or put back, since the last batch.
    """
    given = {
        **(options or {}),
        "nats.servers": servers,
        "stream": stream,
        "valueFormat": value_format,
        **({"subject": subject} if subject else {}),
        **({"jsonSchema": json_schema} if json_schema else {}),
    }
    parsed = SourceOptions.parse(given)
    refuse_ends(given)
    refuse_limits(given)
    _refuse_latest(parsed)
    refuse_members(parsed, FOLDER_COLUMN)
    job = Landing(parsed, _folder(path), _table(table, stream))
    return job.run(spark)


def summary(spark: SparkSession, path: str) -> list[SubjectSummary]:
    """Count a landed table by subject, in the order of the subjects.

    ``path`` is the folder of one table, for example ``<path>/orders``. Raises `OptionError` for a
    path that is not local.
    """
    from pyspark.sql import functions as f

    folder = _folder(path)
    rows = spark.read.parquet(local_url(folder))
    mark = "_" if "_subject" in rows.columns else ""
    seq, time = f.col(mark + "seq"), f.col(mark + "timestamp").cast("string")
    found = (
        rows.groupBy(f.col(mark + "subject").alias("subject"))
        .agg(
            f.count("*").alias("rows"),
            f.min(seq).alias("first_seq"),
            f.max(seq).alias("last_seq"),
            f.min(time).alias("first_time"),
            f.max(time).alias("last_time"),
        )
        .orderBy("subject")
    )
    return [SubjectSummary(**row.asDict()) for row in found.collect()]


def _folder(path: str) -> Path:
    try:
        return local_path(path).absolute()
    except BadArgument as error:
        raise OptionError("path", str(error)) from error


def _refuse_latest(options: SourceOptions) -> None:
    """Refuse to begin at the end: nothing is noted without a batch, so each call would do it."""
    if options.start is not None and options.start.asks_for("latest"):
        raise OptionError(
            options.start.option,
            "may not be latest (-1) for a landing, which would begin at the end with each call and"
            " never land anything; give the sequence to begin at",
        )


def _table(table: str | None, stream: str) -> str:
    name = table or stream.lower()
    if name in _RESERVED or name[0] in "._" or "/" in name or "=" in name:
        raise OptionError(
            "table",
            f"{name!r} cannot be a table's folder: journal and dead_letters are taken, and it may"
            " hold no '/' or '=' nor begin with '_' or '.'",
        )
    return name

"""Land one stream as Parquet tables, one batch per call.

One call of `land` writes a stream's new messages to tables below one folder::

    path/
      <table>/batch_id=0/part-….parquet             one folder per table, one folder per batch
      dead_letters/source=<stream>/batch_id=0/…     messages that do not match the schema
      journal/<stream>/…                            the plan and the entry of each batch

The rows of a batch become visible by one rename per table. The batch is committed when its journal
entry is written, and the next call continues where the last batch ended. If a batch was
interrupted, the next call finishes the batch with the same bounds. So no message is landed twice,
and no message is skipped. Every Parquet reader that supports Hive folders can read the tables. The
file system must rename folders atomically, as local disks and HDFS do; object stores do not.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Final

from twinstream.disk.local_path import local_path
from twinstream.errors import BadArgument
from twinstream.spark.errors import OptionError
from twinstream.spark.landing.landing import Landing
from twinstream.spark.landing.report import LandReport, SubjectSummary
from twinstream.spark.landing.split_tables import DEAD_LETTERS, FOLDER_COLUMN, refuse_members
from twinstream.spark.landing.tables import local_url
from twinstream.spark.source.option_uses import refuse_ends, refuse_limits
from twinstream.spark.source.options import SourceOptions

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
    """Land the new messages of `stream` below `path` as one batch, and return its report.

    Args:
        spark: the session that runs the tasks.
        stream: the stream's name.
        path: a folder of the local file system, or `file:///…`; other schemes such as `s3a://`
            are refused.
        servers: the addresses of the server.
        value_format: `raw` (payload as bytes), `json` (typed columns of `json_schema`) or
            `advisory` (one typed table for each kind of event).
        json_schema: JSON text, or the path of a file.
        table: the table's name, by default the stream's name in lower case; with `advisory` each
            kind has its own table (`max_deliver`, `stream_action`, …).
        subject: subject filters with wildcards, separated by commas; by default all subjects.
        options: further options of the `jetstream` source, for example `nats.user` or
            `minPartitions`; `startingOffsets` applies to the first batch only, and cannot be
            `latest`.

    Raises:
        OptionError: for an invalid option.
        SchemaError: for an invalid schema, and for a schema with a member `batch_id`. Readers of
            the table derive a column of this name from the folders.
        PipelineBusy: while another process lands the stream below `path`.
        JournalError: if a table has rows that are not in the journal of the stream, for example
            rows of another stream.
        DataLossError: if messages were removed before they were landed, or if the stream was
            re-created or restored to an earlier state since the last batch.
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
    job = Landing(parsed, _folder(path), _table_name(table, stream))
    return job.run(spark)


def summary(spark: SparkSession, path: str) -> list[SubjectSummary]:
    """Return the row count and the bounds of sequence and time of each subject in a landed table.

    The list is in the order of the subjects.

    Args:
        spark: the session that reads the table.
        path: the folder of one table, for example `<path>/orders`.

    Raises:
        OptionError: if the path is not local.
    """
    from pyspark.sql import functions as f

    folder = _folder(path)
    rows = spark.read.parquet(local_url(folder))
    # The tables of raw messages have no underscore in the names of their columns.
    prefix = "_" if "_subject" in rows.columns else ""
    seq, time = f.col(prefix + "seq"), f.col(prefix + "timestamp").cast("string")
    found = (
        rows.groupBy(f.col(prefix + "subject").alias("subject"))
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
    """Raise `OptionError` if the options start the landing at the end of the stream.

    A landing stores its position only with a batch. At the end there is no batch to land, so each
    call would start at the end again and land nothing.
    """
    if options.start is not None and options.start.asks_for("latest"):
        raise OptionError(
            options.start.option,
            "may not be latest (-1) for a landing, which would begin at the end in each call and"
            " never land a message; give the sequence to begin at",
        )


def _table_name(table: str | None, stream: str) -> str:
    name = table or stream.lower()
    if name in _RESERVED or name[0] in "._" or "/" in name or "=" in name:
        raise OptionError(
            "table",
            f"{name!r} cannot be a table's folder: journal and dead_letters are reserved, and it"
            " may not contain '/' or '=' nor begin with '_' or '.'",
        )
    return name

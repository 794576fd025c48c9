"""The data source `jetstream` of Spark's Python API."""

from __future__ import annotations

import os
from functools import cache
from typing import TYPE_CHECKING, ClassVar

from attrs import evolve
from pyspark.sql.datasource import (
    DataSource,
    DataSourceReader,
    DataSourceStreamReader,
    DataSourceStreamWriter,
    DataSourceWriter,
)
from pyspark.sql.types import StructType

from twinstream.errors import TwinstreamError
from twinstream.spark.bucket.location import located
from twinstream.spark.bucket.reader import BucketReader
from twinstream.spark.errors import OptionError
from twinstream.spark.running import make_active, slots_of
from twinstream.spark.schemas import arrow_schema, spark_schema
from twinstream.spark.sink.options import SinkOptions
from twinstream.spark.sink.sink import JetStreamStreamWriter, JetStreamWriter
from twinstream.spark.source.option_uses import (
    refuse_batch_only,
    refuse_ends,
    refuse_limits,
    refuse_lone_delay,
    refuse_write_id,
)
from twinstream.spark.source.options import SourceOptions
from twinstream.spark.source.read_columns import ReadColumns
from twinstream.spark.source.reader import JetStreamReader
from twinstream.spark.source.refused_reader import RefusedReader
from twinstream.spark.source.stream_reader import JetStreamStreamReader

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

__all__ = ["JetStreamDataSource", "register"]


class JetStreamDataSource(DataSource):
    """The data source for JetStream streams and key-value buckets.

    `spark.read.format("jetstream")` selects it. The options are described in
    `SourceOptions` and
    `SinkOptions`. Offsets are stream sequences, so a read
    needs no durable consumer, acknowledges no messages and can be repeated.

    Args:
        options: The options of the query.
    """

    slots: ClassVar[int | None] = None
    """The number of tasks that the session runs at once, or `None` if it is not known. The
    process that plans a read has no access to the session, so `register` sends the number with the
    class."""

    more_slots: ClassVar[bool] = False
    """Whether the session may have more slots when the query runs, as on a cluster."""

    @classmethod
    def name(cls) -> str:
        """Return the name of the source for `format` and `USING`."""
        return "jetstream"

    def schema(self) -> StructType:
        """Return all columns that a read with these options offers.

        Spark calls this if the user gave no schema.
        """
        return spark_schema(ReadColumns(SourceOptions.parse(self.options)).columns)

    def reader(self, schema: StructType) -> DataSourceReader:
        """Return the reader of a batch query; `schema` has the requested columns."""
        # The reader does not support pushed predicates. Spark 4.3 applies them also to the next
        # query over the same DataFrame, and to the other branch of a union. Both would miss rows.
        options = self._source_options()
        refuse_limits(self.options)
        if options.bucket is not None:
            return BucketReader(located(options), arrow_schema(schema))
        return JetStreamReader(options, arrow_schema(schema))

    def streamReader(self, schema: StructType) -> DataSourceStreamReader:  # noqa: N802
        """Return the reader of a streaming query.

        If an option is invalid or the bucket does not exist, return a reader that raises the error
        when Spark first uses it.

        Args:
            schema: The schema of the rows.
        """
        try:
            options = self._source_options()
            refuse_ends(self.options)
            refuse_batch_only(self.options)
            refuse_lone_delay(self.options)
            return JetStreamStreamReader(located(options), arrow_schema(schema))
        except TwinstreamError as error:
            return RefusedReader(error)

    def writer(self, schema: StructType, overwrite: bool) -> DataSourceWriter:
        """Return the writer of a batch query. It appends to the stream and replaces no messages.

        Args:
            schema: The schema of the rows.
            overwrite: Whether the mode is `overwrite`, which is refused.

        Raises:
            OptionError: if the mode is `overwrite`, or if an option is refused.
        """
        if overwrite:
            raise OptionError("mode", "'overwrite' is not possible: a stream is append-only")
        return JetStreamWriter(SinkOptions.parse(self.options), schema)

    def streamWriter(  # noqa: N802
        self, schema: StructType, overwrite: bool
    ) -> DataSourceStreamWriter:
        """Return the writer of a streaming query. Spark has no update mode for Python sinks.

        Args:
            schema: The schema of the rows.
            overwrite: Whether the mode is `overwrite`, which is refused.

        Raises:
            OptionError: if the output mode is `complete`, or if an option is refused.
        """
        if overwrite:
            raise OptionError("outputMode", "'complete' is not possible: a stream is append-only")
        refuse_write_id(self.options)
        return JetStreamStreamWriter(SinkOptions.parse(self.options), schema)

    def _source_options(self) -> SourceOptions:
        options = SourceOptions.parse(self.options)
        return evolve(options, slots=self.slots, more_slots=self.more_slots)


def register(spark: SparkSession) -> None:
    """Register the source in a session that did not discover it.

    A session usually discovers the source if this package is installed. But Spark looks for sources
    only once, in a Python process. If that process is killed or takes more than ten seconds, Spark
    raises `DATA_SOURCE_NOT_FOUND` for every later use of the source. Call this function in such a
    session. It is harmless to register the source twice.

    A registered source also knows how many tasks the session runs at once, and divides its reads by
    this number. A discovered source only knows the cores of the driver's machine, and divides large
    reads further. On a cluster, the executors that run at the time of this call count, but never
    less than the driver's cores; large reads are divided further, because more executors may start.

    Spark also raises `DATA_SOURCE_NOT_FOUND` when a thread without an active session writes or
    starts a query. A thread that the application started has no active session, so call this
    function in that thread first.

    Args:
        spark: the session. It also becomes the active session of the calling thread.
    """
    slots = slots_of(spark)
    on_cluster = slots is not None and not _is_local(spark)
    if slots is not None and on_cluster:
        slots = max(slots, os.cpu_count() or 1)
    spark.dataSource.register(_with_slots(slots, on_cluster))
    make_active(spark)


def _is_local(spark: SparkSession) -> bool:
    """Return whether the tasks run in this session's own process."""
    master = str(spark.sparkContext.master)
    return master.startswith("local") and not master.startswith("local-cluster")


@cache
def _with_slots(count: int | None, more: bool) -> type[JetStreamDataSource]:
    """Return the class of the source for sessions with this number of slots."""
    if count is None:
        return JetStreamDataSource

    # Spark pickles this class by value, as no module has it, but its base by name.
    class Registered(JetStreamDataSource):
        slots = count
        more_slots = more

    return Registered

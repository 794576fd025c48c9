"""The data source ``jetstream`` of Spark's Python API."""

from __future__ import annotations

from typing import TYPE_CHECKING

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
from twinstream.spark.session.session import make_active
from twinstream.spark.sink.options import SinkOptions
from twinstream.spark.sink.sink import JetStreamStreamWriter, JetStreamWriter
from twinstream.spark.source.layout import Layout
from twinstream.spark.source.option_uses import (
    refuse_ends,
    refuse_history,
    refuse_limits,
    refuse_lone_delay,
    refuse_write_id,
)
from twinstream.spark.source.options import SourceOptions
from twinstream.spark.source.reader import JetStreamReader
from twinstream.spark.source.refused_reader import RefusedReader
from twinstream.spark.source.stream_reader import JetStreamStreamReader

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

__all__ = ["JetStreamDataSource", "register"]


class JetStreamDataSource(DataSource):
    """JetStream streams and key-value buckets as tables: ``spark.read.format("jetstream")``.

    Options are described in :class:`~twinstream.spark.source.options.SourceOptions`. Offsets are
    stream sequences, so a read needs no consumer, acknowledges nothing and can be repeated.
    """

    @classmethod
    def name(cls) -> str:
        """Return the name for ``format`` and ``USING``."""
        return "jetstream"

    def schema(self) -> StructType:
        """Return all columns that the options offer."""
        return Layout(SourceOptions.parse(self.options)).columns

    def reader(self, schema: StructType) -> DataSourceReader:
        """Return the reader of a batch query; ``schema`` holds the requested columns."""
        # Predicates are not pushed down. Spark 4.3 keeps the pushed predicates for the next query
        # over the same DataFrame, and for the other branch of a union, which then miss rows.
        options = SourceOptions.parse(self.options)
        refuse_limits(self.options)
        if options.bucket is not None:
            return BucketReader(located(options), schema)
        return JetStreamReader(options, schema)

    def streamReader(self, schema: StructType) -> DataSourceStreamReader:  # noqa: N802
        """Return the reader of a streaming query.

        If the options are refused, return a reader that raises the error when Spark first uses it.
        """
        try:
            options = SourceOptions.parse(self.options)
            refuse_ends(self.options)
            refuse_history(self.options)
            refuse_lone_delay(self.options)
            return JetStreamStreamReader(located(options), schema)
        except TwinstreamError as error:
            return RefusedReader(error)

    def writer(self, schema: StructType, overwrite: bool) -> DataSourceWriter:
        """Return the writer of a batch query; it appends to the stream and replaces nothing.

        Raises:
            OptionError: if the mode is ``overwrite``, or if an option is refused.
        """
        if overwrite:
            raise OptionError("mode", "'overwrite' is not possible: a stream is append-only")
        return JetStreamWriter(SinkOptions.parse(self.options), schema)

    def streamWriter(  # noqa: N802
        self, schema: StructType, overwrite: bool
    ) -> DataSourceStreamWriter:
        """Return the writer of a streaming query; Spark has no update mode for Python sinks.

        Raises:
            OptionError: if the output mode is ``complete``, or if an option is refused.
        """
        if overwrite:
            raise OptionError("outputMode", "'complete' is not possible: a stream is append-only")
        refuse_write_id(self.options)
        return JetStreamStreamWriter(SinkOptions.parse(self.options), schema)


def register(spark: SparkSession) -> None:
    """Register the source in a session that did not discover it.

    Sessions started where this package is installed usually discover it. But Spark looks for
    sources only once: if the Python process that does this is killed or takes more than ten
    seconds, Spark raises ``DATA_SOURCE_NOT_FOUND`` from then on. This call fixes that. Registering
    the source twice is harmless.

    Spark also raises ``DATA_SOURCE_NOT_FOUND`` when a thread without an active session, such as
    one that the application started, writes or starts a query. Call this in that thread first.

    Args:
        spark: the session; it also becomes the active session of the calling thread.
    """
    spark.dataSource.register(JetStreamDataSource)
    make_active(spark)

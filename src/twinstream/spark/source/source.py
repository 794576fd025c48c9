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

from twinstream.spark.errors import OptionError, SparkSourceError
from twinstream.spark.source.layout import Layout
from twinstream.spark.source.option_uses import refuse_ends, refuse_limits, refuse_lone_delay, refuse_write_id
from twinstream.spark.source.options import SourceOptions
from twinstream.spark.source.reader import JetStreamReader
from twinstream.spark.source.refused_reader import RefusedReader
from twinstream.spark.session.session import make_active
from twinstream.spark.sink.sink import JetStreamStreamWriter, JetStreamWriter
from twinstream.spark.sink.options import SinkOptions
from twinstream.spark.source.stream_reader import JetStreamStreamReader

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

__all__ = ["JetStreamDataSource", "register"]


class JetStreamDataSource(DataSource):
    """Streams of JetStream as tables: ``spark.read.format("jetstream")``.

    Options are described in :class:`~twinstream.spark.source.options.SourceOptions`. Offsets are stream
    sequences, so a read needs no consumer, acknowledges nothing and can be repeated.
    """

    @classmethod
    def name(cls) -> str:
        """Return the name for ``format`` and ``USING``."""
        return "jetstream"

    def schema(self) -> StructType:
        """Return all columns that the options offer."""
        return Layout(SourceOptions.parse(self.options)).columns

    def reader(self, schema: StructType) -> DataSourceReader:
        """Return the reader of a batch; ``schema`` holds the columns that are wanted."""
        # Predicates are not pushed: Spark 4.3 keeps what one query pushed for the next one over the
        # same DataFrame, and for its other half in a union, which then miss rows.
        options = SourceOptions.parse(self.options)
        refuse_limits(self.options)
        return JetStreamReader(options, schema)

    def streamReader(self, schema: StructType) -> DataSourceStreamReader:  # noqa: N802
        """Return the reader of a streaming query, or one that says why there is none."""
        try:
            options = SourceOptions.parse(self.options)
            refuse_ends(self.options)
            refuse_lone_delay(self.options)
            return JetStreamStreamReader(options, schema)
        except SparkSourceError as error:
            return RefusedReader(error)

    def writer(self, schema: StructType, overwrite: bool) -> DataSourceWriter:
        """Return the writer of a batch; messages are appended to the stream, never replaced."""
        if overwrite:
            raise OptionError("mode", "'overwrite' is not possible: a stream is appended to")
        return JetStreamWriter(SinkOptions.parse(self.options), schema)

    def streamWriter(  # noqa: N802
        self, schema: StructType, overwrite: bool
    ) -> DataSourceStreamWriter:
        """Return the writer of a streaming query; Spark has no update mode for Python's sinks."""
        if overwrite:
            raise OptionError("outputMode", "'complete' is not possible: a stream is appended to")
        refuse_write_id(self.options)
        return JetStreamStreamWriter(SinkOptions.parse(self.options), schema)


def register(spark: SparkSession) -> None:
    """Make the source known to a session that does not find it by itself.

    Sessions started where this package is installed know it already, but Spark looks for sources
    once only: when the Python process that does it is killed or too slow (ten seconds), Java
    answers ``DATA_SOURCE_NOT_FOUND`` from then on. After this call it does not. Registering a
    source that is known does no harm.

    Spark also answers that to a write, or to the start of a query, in a thread that has no active
    session, such as one that the program began itself. Call this in that thread first.
    """
    spark.dataSource.register(JetStreamDataSource)
    make_active(spark)

"""The writers of batch and streaming queries, which publish rows to streams."""

from __future__ import annotations

import uuid
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

from pyspark.sql.datasource import (
    DataSourceArrowWriter,
    DataSourceStreamArrowWriter,
    WriterCommitMessage,
)
from pyspark.sql.types import StructType

from js_sync.stream import known_info
from twinstream.errors import StreamNotFound
from twinstream.spark.client.retry import through
from twinstream.spark.errors import OptionError
from twinstream.spark.sink.guarantee import check_promise
from twinstream.spark.sink.ledger import LedgerWriter
from twinstream.spark.sink.ledger_tasks import refuse_other_tasks
from twinstream.spark.sink.options import SinkOptions
from twinstream.spark.sink.publish_task import publish_rows
from twinstream.spark.sink.report import JetStreamCommit
from twinstream.spark.sink.rows import RowReader
from twinstream.spark.sink.subjects import KnownSubjects
from twinstream.spark.sink.task_identity import TaskIdentity

if TYPE_CHECKING:
    import pyarrow as pa

    from js_sync import Connection, JetStream, Stream

__all__ = ["JetStreamStreamWriter", "JetStreamWriter"]


class _Writer:
    """The base class of the writers of batch and streaming queries."""

    streams = False

    def __init__(self, options: SinkOptions, schema: StructType) -> None:
        self._options = options
        self._rows = RowReader(options, schema)
        # Spark pickles this object once for all attempts of a batch write, so a random ID is the
        # same in each attempt.
        self._write_id = options.write_id or uuid.uuid4().hex

    def _write(self, iterator: Iterator[pa.RecordBatch]) -> JetStreamCommit:
        """Publish the rows of one task, and return the numbers of rows.

        The stream is checked before any row is sent, unless the write has no `stream`.
        """
        options = self._options
        identity = TaskIdentity.here(
            self._write_id, given=options.write_id is not None, streams=self.streams
        )
        if options.idempotence == "ledger":
            identity.check()
        with options.connection.connect_in_task(options.ack_timeout) as nc:
            jet = _jetstream(nc, options)
            stream = _checked_stream(jet, options)
            config = None if stream is None else known_info(stream).config
            rows = self._rows.read(iterator, KnownSubjects(jet, config, options.subject).check)
            if options.idempotence == "ledger" and stream is not None:
                return LedgerWriter(nc, stream, options, identity).write(rows)
            window = None if config is None else config.duplicate_window
            seconds = None if window is None else window.total_seconds()
            return publish_rows(jet, options, rows, identity, seconds)

    def _end(self, messages: list[Any]) -> None:
        """Check the ledgers of a write after all its tasks have ended.

        Raises `LedgerError` if an earlier attempt stored rows in a task that this attempt does not
        have. Without `idempotence=ledger` nothing is checked.
        """
        options = self._options
        if options.idempotence == "ledger":
            with options.connection.connect_in_task(options.ack_timeout) as nc:
                stream = _checked_stream(_jetstream(nc, options), options)
                if stream is not None:
                    refuse_other_tasks(stream, messages, options.ack_timeout)


class JetStreamWriter(_Writer, DataSourceArrowWriter):
    """The writer of a batch query. Rows are visible as soon as the server has stored them."""

    def write(  # type: ignore[override]  # as Spark's own Arrow writers narrow it
        self, iterator: Iterator[pa.RecordBatch]
    ) -> WriterCommitMessage:
        """Publish the rows of one task, and return the numbers of rows."""
        return self._write(iterator)

    def commit(self, messages: list[Any]) -> None:
        """Raise `LedgerError` if an earlier attempt stored rows in a task that is missing now."""
        self._end(messages)

    def abort(self, messages: list[Any]) -> None:
        """Do nothing. Stored messages stay; see `SinkOptions` for a repeated attempt."""


class JetStreamStreamWriter(_Writer, DataSourceStreamArrowWriter):
    """The writer of a streaming query. Rows are visible as soon as the server has stored them."""

    streams = True

    def write(  # type: ignore[override]  # as Spark's own Arrow writers narrow it
        self, iterator: Iterator[pa.RecordBatch]
    ) -> WriterCommitMessage:
        """Publish the rows of one task, and return the numbers of rows."""
        return self._write(iterator)

    def commit(self, messages: list[Any], batchId: int) -> None:  # noqa: N803
        """Raise `LedgerError` if an earlier attempt stored rows in a task that is missing now."""
        self._end(messages)

    def abort(self, messages: list[Any], batchId: int) -> None:  # noqa: N803
        """Do nothing. Stored messages stay; see `SinkOptions` for a repeated attempt."""


def _jetstream(nc: Connection, options: SinkOptions) -> JetStream:
    settings = options.connection
    return nc.jetstream(domain=settings.domain, prefix=settings.api_prefix)


def _checked_stream(jet: JetStream, options: SinkOptions) -> Stream | None:
    """Request and return the stream that the options name, or return `None` if they name none.

    Raises `OptionError` if there is no such stream, or if a setting of the stream breaks the
    guarantee of the option `idempotence`.
    """
    if options.stream is None:
        return None
    name = options.stream
    try:
        stream = through(lambda: jet.get_stream(name), options.ack_timeout)
    except StreamNotFound as error:
        raise OptionError("stream", f"there is no stream {options.stream!r}") from error
    check_promise(known_info(stream).config, options)
    return stream

"""What happens to the stream when a batch is landed: nothing, a bookmark moves, or a purge.

This is done after Spark's own commit of the batch, and can be repeated. A crash between the two
leaves messages in the stream for longer than needed; it never loses one.
"""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Final, Protocol

from twinstream.errors import ConsumerNotFound
from twinstream.models import AckPolicy, ConsumerConfig, DeliverPolicy
from twinstream.spark.errors import CheckpointError, OptionError
from twinstream.spark.source.stream_identity import why_other
from twinstream.spark.pipeline.batch_log import BatchEntry, BatchLog, of_one_stream
from twinstream.spark.pipeline.config import SourceConfig
from twinstream.spark.pipeline.held_messages import held_messages, windows
from twinstream.spark.pipeline.landed import missing_of, possible_tables, read_landed
from twinstream.spark.pipeline.sink import Sink
from twinstream.spark.source.stream_state import StreamState, stored_at

if TYPE_CHECKING:
    from js_sync import JetStream

__all__ = ["Release", "release_of"]

_MARK: Final = "twinstream.pipeline"
"""Key of a bookmark's metadata that tells it from consumers that somebody reads from."""


class Release(Protocol):
    """Lets go of what is landed."""

    def prepare(self, jet: JetStream, position: int) -> None:
        """Check that it can be done; ``position`` is the first sequence that is not landed."""
        ...

    def release(self, jet: JetStream, entry: BatchEntry) -> int:
        """Let go of all up to the end of a batch; returns how many messages were removed."""
        ...


class KeepAll:
    """``commit = "none"``: the stream is left as it is."""

    def prepare(self, jet: JetStream, position: int) -> None:
        """Do nothing."""

    def release(self, jet: JetStream, entry: BatchEntry) -> int:
        """Do nothing."""
        return 0


class Bookmark:
    """``commit = "bookmark"``: a consumer that nobody pulls from stands where the batches end.

    The lag that any tool shows for it is the pipeline's. On a stream with interest retention it
    keeps messages until they are landed. Needs server 2.14.
    """

    def __init__(self, source: SourceConfig) -> None:
        self._source: Final = source

    def prepare(self, jet: JetStream, position: int) -> None:
        """Make the consumer, or find the one made before. Raises `OptionError` for another's."""
        stream = jet.get_stream(self._source.stream)
        name = self._source.bookmark
        try:
            consumer = stream.get_consumer(name)
        except ConsumerNotFound:
            subjects = list(self._source.source_options.subjects)
            consumer = stream.create_consumer(
                ConsumerConfig(
                    durable_name=name,
                    description="Progress of a pipeline; nobody pulls from it.",
                    deliver_policy=DeliverPolicy.ALL,
                    ack_policy=AckPolicy.EXPLICIT,
                    filter_subjects=subjects or None,
                    metadata={_MARK: self._source.name},
                )
            )
        config = consumer.cached_info.config if consumer.cached_info else None
        if config is None or (config.metadata or {}).get(_MARK) != self._source.name:
            raise OptionError(
                "bookmark",
                f"stream {self._source.stream} has a consumer {name!r} that is no bookmark of this"
                " source; name another one",
            )
        consumer.reset(position)

    def release(self, jet: JetStream, entry: BatchEntry) -> int:
        """Move the bookmark to the end of the batch."""
        consumer = jet.get_stream(self._source.stream).get_consumer(self._source.bookmark)
        consumer.reset(entry.end)
        return 0


class Purge:
    """``commit = "purge"``: messages leave the stream once they are found in the tables.

    Every message that the stream still holds below the end of the batch is looked up in the
    tables, read anew from their files, by its sequence and its time, before any is removed.
    """

    def __init__(self, source: SourceConfig, sink: Sink, log: BatchLog) -> None:
        self._source: Final = source
        self._sink: Final = sink
        self._log: Final = log
        self._since: int | None = None

    def prepare(self, jet: JetStream, position: int) -> None:
        """Refuse streams that cannot be purged."""
        config = jet.get_stream(self._source.stream).config
        for setting in ("sealed", "deny_purge"):  # the first brings the second
            if getattr(config, setting):
                raise OptionError(
                    "commit", f'"purge" is not possible: stream {config.name} is set to {setting}'
                )

    def release(self, jet: JetStream, entry: BatchEntry) -> int:
        """Remove all up to the end of the batch, if the tables have it; else `CheckpointError`."""
        stream = jet.get_stream(self._source.stream)
        state = StreamState.of(self._source.stream, stream.info(confirmed=True))
        reason = why_other(entry.position, state, partial(stored_at, jet))
        if reason is not None:
            if not self._source.source_options.fail_on_data_loss:
                return 0  # the batches to come are of the stream as it is now
            raise CheckpointError(
                f"nothing was purged: {reason}; batch {entry.batch} was landed before that"
            )
        tables, since = possible_tables(self._source), self._first_batch(entry)
        for low, high in windows(state.first, entry.end):
            held = held_messages(jet, self._source.source_options, low, high)
            landed = read_landed(self._sink, self._source, tables, low, high, since)
            missing = missing_of(held, landed.rows)
            if missing:
                raise CheckpointError(
                    f"nothing was purged: stream {self._source.stream} holds {len(missing)}"
                    f" messages from sequence {missing[0]} on that no table has; land them with"
                    " another start, or remove them by hand"
                )
        subjects = self._source.source_options.subjects or (None,)
        removed = sum(stream.purge(subject=each, before_seq=entry.end) for each in subjects)
        self._since = entry.batch
        return removed

    def _first_batch(self, entry: BatchEntry) -> int:
        """Return the first batch whose messages the stream may still hold.

        After a purge that is the next one. Before this process has purged, it is the first batch of
        the stream as it is now: rows of an earlier stream of the name have the same sequences.
        """
        if self._since is None:
            self._since = min(of_one_stream(self._log.entries()), default=entry.batch)
        return self._since


def release_of(source: SourceConfig, sink: Sink, log: BatchLog) -> Release:
    """Return what the source's ``commit`` asks for."""
    match source.commit:
        case "none":
            return KeepAll()
        case "bookmark":
            return Bookmark(source)
        case "purge":
            return Purge(source, sink, log)

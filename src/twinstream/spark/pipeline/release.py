"""Release landed messages: keep them, move a bookmark, or purge the stream.

A batch is released after its entry was written to the journal. A release can be repeated. If a
crash prevents a release, the stream keeps messages for longer than needed, but no message is lost.
"""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Final, Protocol

from attrs import evolve

from twinstream.errors import ConsumerNotFound
from twinstream.lake.entry import BatchEntry, of_one_stream
from twinstream.lake.journal import Journal
from twinstream.models import AckPolicy, ConsumerConfig, DeliverPolicy
from twinstream.spark.errors import CheckpointError, OptionError
from twinstream.spark.landing.write_batch import position_of
from twinstream.spark.pipeline.settings.config import SourceConfig
from twinstream.spark.pipeline.state.held_messages import held_messages, windows
from twinstream.spark.pipeline.state.landed_rows import missing_of, possible_tables, read_landed
from twinstream.spark.pipeline.tables.sink import Sink
from twinstream.spark.source.stream_identity import why_other
from twinstream.spark.source.stream_state import StreamState, stored_at

if TYPE_CHECKING:
    from js_sync import JetStream

__all__ = ["Release", "release_of"]

# The metadata key by which a bookmark is recognized. Its value is the name of the source.
_MARK: Final = "twinstream.pipeline"


class Release(Protocol):
    """A way to release landed messages."""

    def prepare(self, jet: JetStream, position: int) -> None:
        """Prepare releases, or raise an error if they are impossible.

        `position` is the first sequence that is not landed.
        """
        ...

    def release(self, jet: JetStream, entry: BatchEntry) -> int:
        """Release all messages up to the end of a batch.

        Return the number of messages that were removed from the stream.
        """
        ...


class KeepAll:
    """The release for `commit = "none"`, which leaves the stream unchanged."""

    def prepare(self, jet: JetStream, position: int) -> None:
        """Do nothing."""

    def release(self, jet: JetStream, entry: BatchEntry) -> int:
        """Do nothing and return 0."""
        return 0


class Bookmark:
    """The release for `commit = "bookmark"`: a consumer marks the end of the landed batches.

    No client pulls from the consumer. The lag that tools show for the consumer is the pipeline's
    lag. On a stream with interest retention, messages are kept until the consumer has moved past
    them. Needs server 2.14.
    """

    def __init__(self, source: SourceConfig) -> None:
        self._source: Final = source

    def prepare(self, jet: JetStream, position: int) -> None:
        """Find or create the consumer, and move it to `position`.

        If the source's subjects were changed, also change the filters of the consumer. Raises
        `OptionError` if a consumer of this name is no bookmark of this source.
        """
        stream = jet.get_stream(self._source.stream)
        name = self._source.bookmark
        subjects = list(self._source.source_options.subjects)
        try:
            consumer = stream.get_consumer(name)
        except ConsumerNotFound:
            consumer = stream.create_consumer(
                ConsumerConfig(
                    durable_name=name,
                    description="Progress of a pipeline; no client pulls from it.",
                    deliver_policy=DeliverPolicy.ALL,
                    ack_policy=AckPolicy.EXPLICIT,
                    filter_subjects=subjects or None,
                    metadata={_MARK: self._source.name},
                )
            )
        config = consumer.cached_info.config if consumer.cached_info else None
        # Another program may use a consumer of this name, which must not be moved.
        owner = (config.metadata or {}).get(_MARK) if config else None
        if config is None or owner != self._source.name:
            raise OptionError(
                "bookmark",
                f"stream {self._source.stream} has a consumer {name!r} that is no bookmark of this"
                " source; choose another name",
            )
        if sorted(_filters(config)) != sorted(subjects):
            # A config has either `filter_subject` or `filter_subjects`.
            changed = evolve(config, filter_subject=None, filter_subjects=subjects or None)
            consumer = stream.update_consumer(changed)
        consumer.reset(position)

    def release(self, jet: JetStream, entry: BatchEntry) -> int:
        """Move the bookmark to the end of the batch, and return 0."""
        consumer = jet.get_stream(self._source.stream).get_consumer(self._source.bookmark)
        consumer.reset(entry.end)
        return 0


def _filters(config: ConsumerConfig) -> list[str]:
    if config.filter_subject:
        return [config.filter_subject]
    return list(config.filter_subjects or ())


class Purge:
    """The release for `commit = "purge"`: messages that are in the tables are purged.

    Before a purge, every message that the stream still has below the end of the batch is looked up
    in the files of the tables, by its sequence and its time. Only messages of the source's subjects
    are looked up and purged.
    """

    def __init__(self, source: SourceConfig, sink: Sink, journal: Journal) -> None:
        self._source: Final = source
        self._sink: Final = sink
        self._journal: Final = journal
        self._since: int | None = None

    def prepare(self, jet: JetStream, position: int) -> None:
        """Raise `OptionError` if the stream's settings prevent a purge."""
        config = jet.bind_stream(self._source.stream).info().config
        # Check `sealed` first, because a sealed stream also has `deny_purge`.
        for setting in ("sealed", "deny_purge"):
            if getattr(config, setting):
                raise OptionError(
                    "commit", f'"purge" is not possible: stream {config.name} is set to {setting}'
                )

    def release(self, jet: JetStream, entry: BatchEntry) -> int:
        """Purge up to the end of the batch, and return the number of removed messages.

        Raises `CheckpointError`, without a purge, if the tables lack messages that the stream has
        below the end. If the stream is not the one from which the batch was landed, nothing is
        purged: raises `CheckpointError`, or with `failOnDataLoss = false` returns 0.
        """
        stream = jet.get_stream(self._source.stream)
        state = StreamState.of(self._source.stream, stream.info(confirmed=True))
        reason = why_other(position_of(entry), state, partial(stored_at, jet))
        if reason is not None:
            if not self._source.source_options.fail_on_data_loss:
                return 0  # the batch is from an earlier stream, so it releases nothing
            raise CheckpointError(
                f"nothing was purged: {reason}; batch {entry.batch} was landed before that"
            )
        tables, since = possible_tables(self._source, self._sink), self._first_batch(entry)
        for low, high in windows(state.first, entry.end):
            held = held_messages(jet, self._source.source_options, low, high)
            landed = read_landed(self._sink, self._source, tables, low, high, since)
            missing = missing_of(held, landed.rows)
            if missing:
                raise CheckpointError(
                    f"nothing was purged: stream {self._source.stream} has {len(missing)} messages,"
                    f" the first with sequence {missing[0]}, that no table has; land them with"
                    " another start, or remove them by hand"
                )
        subjects = self._source.source_options.subjects or (None,)
        removed = sum(stream.purge(subject=each, before_seq=entry.end) for each in subjects)
        self._since = entry.batch
        return removed

    def _first_batch(self, entry: BatchEntry) -> int:
        """Return the number of the first batch whose messages the stream may still have.

        Before the first purge of this process, this is the first batch of the current stream. Rows
        of an earlier stream of this name, which may have the same sequences, are excluded. After a
        purge, this is the last batch whose messages were purged.
        """
        if self._since is None:
            self._since = min(of_one_stream(self._journal.entries()), default=entry.batch)
        return self._since


def release_of(source: SourceConfig, sink: Sink, journal: Journal) -> Release:
    """Return the release for the source's setting `commit`."""
    match source.commit:
        case "none":
            return KeepAll()
        case "bookmark":
            return Bookmark(source)
        case "purge":
            return Purge(source, sink, journal)

"""Publish dead letters to a subject, with confirmation by the stream that stores them."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, Final

import pyarrow as pa
from attrs import frozen

from js_sync import PublishFailure, PublishRequest
from twinstream.core.workers.dead_letter import headers_of_misfit
from twinstream.errors import BadArgument, JetStreamError
from twinstream.lake.entry import BatchEntry
from twinstream.models import Timestamp
from twinstream.records.headers import Headers
from twinstream.spark.errors import OptionError, SparkSourceError
from twinstream.spark.pipeline.letters.letter_pages import BatchLetters, LetterPage
from twinstream.spark.pipeline.letters.letters_by_batch import letters_by_batch
from twinstream.spark.pipeline.letters.replay import batches_with_letters
from twinstream.spark.pipeline.located_source import located_source
from twinstream.spark.pipeline.maintenance.maintenance_lock import maintenance_lock
from twinstream.spark.pipeline.settings.config import PipelineConfig, SourceConfig
from twinstream.spark.pipeline.state.source_state import SourceState
from twinstream.spark.source.driver_client import Leader

if TYPE_CHECKING:
    from js_sync import JetStream

__all__ = ["PublishedLetters", "publish_letters"]

# Errors that concern one letter. The others may be stored nevertheless.
_REFUSALS: Final = (BadArgument, JetStreamError)


@frozen(kw_only=True)
class PublishedLetters:
    """The result: how many letters the stream `stream` has stored, and how many it had already.

    `window` is the number of seconds for which the stream recognizes a repeated letter. `refused`
    are the sequences of letters that were not stored, for example because they are too large.
    `reason` is the reason of the first of them.
    """

    source: str
    stream: str
    published: int
    repeated: int
    window: float
    refused: list[int]
    reason: str | None


def publish_letters(
    config: PipelineConfig,
    source: SourceConfig,
    subject: str,
    low: int = 0,
    high: int | None = None,
    *,
    tell: Callable[[int], None] = lambda _: None,
) -> PublishedLetters:
    """Publish the dead letters of all batches that have sequences in `[low, high)` to a subject.

    The payload is that of the message. Headers `Dead-…` have its stream, sequence, subject, time
    and headers, and the reason. The letters stay in their table. The message id is the same each
    time, so the stream stores no letter twice within its duplicate window.

    Args:
        config: the pipeline, of which the connection is used.
        source: the source of the letters.
        subject: the subject, which one stream must take, but not that of the source.
        low: the first sequence.
        high: the sequence after the last sequence; `None` means no upper bound.
        tell: called after each letter with the number of letters so far.

    Raises:
        OptionError: if no stream takes the subject, or that of the source does.
        SparkSourceError: if it is unknown whether a letter was stored, for example because the
            connection was lost. Other letters may have been stored.
        CheckpointError: if the tables have a part of an unfinished batch.
    """
    state, source = SourceState.of(config, source), located_source(source)
    with (
        Leader(source.source_options) as leader,
        maintenance_lock(config, "letters publish"),
    ):
        jet = leader.jet()
        target = _target_stream(jet, source, subject)
        settings = jet.get_stream(target).info().config
        batches = batches_with_letters(state.journal.entries(), low, high)
        requests = _requests(state, source, batches, subject)
        published = repeated = 0
        refused: list[int] = []
        reason: str | None = None
        with jet.publish_many(requests, raise_failures=False) as outcomes:
            for done, outcome in enumerate(outcomes):
                if isinstance(outcome, PublishFailure):
                    if not isinstance(outcome.error, _REFUSALS):
                        raise SparkSourceError(
                            f"dead letter {done + 1} was perhaps not stored ({outcome.error}); at"
                            f" least {published + repeated} were stored: publish them again"
                        )
                    refused.append(_seq_of(outcome.request))
                    reason = reason or str(outcome.error)
                elif outcome.duplicate:
                    repeated += 1
                else:
                    published += 1
                tell(done + 1)
    window = settings.duplicate_window
    return PublishedLetters(
        source=source.name,
        stream=target,
        published=published,
        repeated=repeated,
        window=0.0 if window is None else window.total_seconds(),
        refused=refused,
        reason=reason,
    )


def _target_stream(jet: JetStream, source: SourceConfig, subject: str) -> str:
    """Return the name of the stream that stores messages with this subject.

    Raises `OptionError` if there is none, or if the source reads that stream.
    """
    names = list(jet.stream_names(subject))
    if not names:
        raise OptionError("subject", f"no stream takes {subject!r}: create one")
    if source.stream in names:
        raise OptionError(
            "subject",
            f"stream {source.stream} takes {subject!r}, and source {source.name} would land the"
            " letters as new messages: give another subject, or use letters replay",
        )
    return names[0]


def _requests(
    state: SourceState, source: SourceConfig, batches: list[BatchEntry], subject: str
) -> Iterator[PublishRequest]:
    files = state.sink.files(source.dead_letters, [each.batch for each in batches])
    payload = source.source_options.corrupt_column
    letters = [
        BatchLetters(each.batch, tuple(files[each.batch]), state.sink.lake) for each in batches
    ]
    for entry, (_, pages) in zip(batches, letters_by_batch(letters, payload), strict=True):
        for page in pages:
            yield from _page_requests(source, entry, page, subject)


def _page_requests(
    source: SourceConfig, entry: BatchEntry, page: LetterPage, subject: str
) -> Iterator[PublishRequest]:
    """Yield a request for each letter of a page. Its message id is the same at each repeat."""
    messages, prefix = page.messages, source.key_prefix or ""
    columns = (
        messages.seqs,
        messages.subjects,
        messages.times.cast(pa.int64()),
        messages.headers,
        messages.payloads,
    )
    reasons = page.reasons.to_pylist()
    letters = zip(*(each.to_pylist() for each in columns), reasons, strict=True)
    for seq, own_subject, time, header_block, data, reason in letters:
        headers = headers_of_misfit(
            source.stream,
            seq,
            prefix + own_subject.decode(),
            Timestamp.from_ns(time),
            Headers.parse(header_block) if header_block else Headers(),
            reason,
        )
        # The creation time distinguishes the letter from one of a later stream of the same name.
        # `_seq_of` reads the sequence at the end.
        identity = f"{source.name}:{source.stream}:{entry.created}:{seq}"
        yield PublishRequest(subject=subject, data=data, headers=headers, msg_id=identity)


def _seq_of(request: PublishRequest) -> int:
    """Return the sequence of the letter that a request publishes."""
    return int((request.msg_id or "").rpartition(":")[2])

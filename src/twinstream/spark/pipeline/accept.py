"""Continue after the landed batches with a stream, or with subjects, that the user accepts.

The decision is an empty batch in the journal: its entry has the new stream and subjects, and the
next batch begins where it ends. It takes the place of a batch that was planned and not finished,
whose rows are removed from the tables.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

from twinstream.lake.entry import BatchEntry
from twinstream.lake.journal import Journal
from twinstream.lake.origin import Origin
from twinstream.lake.plan import Plan
from twinstream.lake.stream_mark import TimeAt
from twinstream.spark.errors import CheckpointError, DataLossError
from twinstream.spark.landing.resume import start_behind
from twinstream.spark.landing.write_batch import position_of
from twinstream.spark.pipeline.settings.config import SourceConfig
from twinstream.spark.pipeline.start_point import landed_position
from twinstream.spark.source.filters import same_filter
from twinstream.spark.source.stream_identity import why_other
from twinstream.spark.source.stream_state import StreamState

if TYPE_CHECKING:
    from twinstream.spark.pipeline.source_batches import SourceBatches

__all__ = ["accept_stream", "accept_subjects", "check_subjects"]


def accept_stream(
    journal: Journal, batches: SourceBatches, state: StreamState, time_at: TimeAt
) -> None:
    """Continue on a stream that the user accepts as a copy of the one that was landed.

    Nothing changes if no batch is planned yet. Nothing changes either if the run can continue
    without this decision, because `why_other` accepts the stream. Raises `DataLossError` if the
    stream cannot be a copy.
    """
    last = journal.last()
    newest = journal.unfinished() or last
    if newest is None:
        return
    reason = why_other(position_of(newest), state, time_at)
    if reason is None:
        return
    end = newest.start if last is None else last.end
    # A copy has its own creation time. A stream that was restored to an earlier state keeps it.
    is_restored = newest.created == state.created
    ends_too_early = end > state.next
    # The user decides only if the message that would identify a copy is gone.
    has_marked_seq = newest.mark is not None and time_at(state.name, newest.mark.seq) is not None
    if is_restored or ends_too_early or has_marked_seq:
        raise DataLossError(
            f"stream {state.name} cannot be accepted as a copy of the one that was landed up to"
            f" sequence {end - 1}: {reason}; it ends at {state.next - 1}"
        )
    _land_empty(journal, batches, _empty_plan(last, end, state, newest.filter))


def accept_subjects(
    source: SourceConfig,
    journal: Journal,
    batches: SourceBatches,
    origin: Origin,
    state: StreamState,
    time_at: TimeAt,
    seq_from: Callable[[str, int], int | None],
) -> None:
    """Continue with the subjects of the source, if they are others than the landed ones.

    Messages that the old subjects skipped are not landed. `seq_from` returns the sequence of the
    first message, at or after a given sequence, that the new subjects match, or `None` if there
    is none. Raises `CheckpointError` if a purge would remove messages that the old subjects
    skipped. Raises `DataLossError`, unless `failOnDataLoss` is false, if the stream was
    re-created, restored or has lost messages.
    """
    before, last = _landed_filter(journal), journal.last()
    if before is None or same_filter(before, source.filter):
        return
    strict = source.source_options.fail_on_data_loss
    start = start_behind(state, landed_position(origin, last), time_at, strict=strict)
    first = seq_from(state.name, state.first) if source.commit == "purge" else None
    if first is not None and first < start:
        raise CheckpointError(
            f"source {source.name}: stream {state.name} still has message {first}, which the new"
            f" subjects match, below {start}, up to which the source has landed: with"
            ' commit = "purge" it would be removed, landed or not; remove it by hand, or set'
            ' commit = "none"'
        )
    _land_empty(journal, batches, _empty_plan(last, start, state, source.filter))


def check_subjects(source: SourceConfig, journal: Journal) -> None:
    """Raise `CheckpointError` if a source landed other subjects before.

    Messages that the earlier subjects skipped would never be landed. With
    `failOnDataLoss = false`, this is accepted.
    """
    before = _landed_filter(journal)
    unchanged = before is None or same_filter(before, source.filter)
    if unchanged or not source.source_options.fail_on_data_loss:
        return
    if source.bucket is not None:
        raise CheckpointError(
            f"source {source.name} landed other keys of its bucket before ({before}), now it names"
            f" {source.filter}: changes that were skipped would not be landed. Name the keys as"
            " before, and the other keys in a second source with its own table"
        )
    raise CheckpointError(
        f"source {source.name} landed the subjects {before or '>'} before, now it names"
        f" {source.filter or '>'}: messages that were skipped would not be landed. Name the"
        " subjects as before, or continue after the landed batches with the new ones, with"
        " twinstream pipeline run --accept-subjects; then twinstream pipeline replay lands the"
        " messages that earlier batches skipped"
    )


def _landed_filter(journal: Journal) -> str | None:
    """Return the subjects of the newest batch, or `None` if no batch is planned yet."""
    newest = journal.unfinished() or journal.last()
    return None if newest is None else newest.filter


def _land_empty(journal: Journal, batches: SourceBatches, empty: Plan) -> None:
    """Land `empty`, a plan without sequences, instead of the unfinished batch or as the next one.

    The caller has the lock of the run, so no other driver lands the source.
    """
    if journal.unfinished() is not None:
        # Only this batch can be in the tables, because a batch is planned behind the last entry.
        batches.refuse_taken(empty.batch + 1)
        batches.discard(empty.batch)
    else:
        batches.refuse_taken(empty.batch)
        journal.planned(empty)
    journal.landed(BatchEntry.of_plan(empty), "accepted")


def _empty_plan(last: BatchEntry | None, seq: int, state: StreamState, subjects: str) -> Plan:
    """Return the plan of a batch after `last` that has no sequences, and that ends at `seq`."""
    return Plan(
        batch=0 if last is None else last.batch + 1,
        start=seq,
        end=seq,
        created=state.created,
        mark=state.mark,
        filter=subjects,
    )

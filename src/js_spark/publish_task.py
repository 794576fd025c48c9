"""What a writing task does, in the modes where rows are published one by one."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Final

from js_core.errors import MessageExists, OutcomeUnknown, WrongLastSequence
from js_core.publish import PublishFailure, PublishRequest
from js_spark.errors import SchemaError
from js_spark.sink_options import SinkOptions
from js_spark.sink_report import JetStreamCommit
from js_spark.sink_rows import OutMessage
from js_spark.task_identity import TaskIdentity

if TYPE_CHECKING:
    from js_sync import JetStream

__all__ = ["publish_rows"]

#: How often a row is sent again, and seconds between: a leader that was lost is followed within
#: nine seconds, and a lost answer is missed after a tenth of ``ackTimeoutMs``.
_RETRIES: Final = 9
_RETRY_WAIT: Final = 1.0


def publish_rows(
    jet: JetStream, options: SinkOptions, rows: Iterator[OutMessage], identity: TaskIdentity
) -> JetStreamCommit:
    """Publish rows with many acknowledgements under way, and count what was stored.

    Raises the server's error for the first row that it does not take.
    """
    stored = present = 0
    with jet.publish_many(
        _requests(options, rows, identity),
        window=options.max_in_flight,
        timeout=options.ack_timeout,
        retries=_RETRIES,
        retry_wait=_RETRY_WAIT,
    ) as outcomes:
        for outcome in outcomes:
            if isinstance(outcome, PublishFailure):
                if options.idempotence != "insert" or not _is_there(outcome):
                    raise outcome.error
                present += 1
            elif outcome.duplicate:
                present += 1
            else:
                stored += 1
    return JetStreamCommit(stored, present)


def _requests(
    options: SinkOptions, rows: Iterator[OutMessage], identity: TaskIdentity
) -> Iterator[PublishRequest]:
    numbered = options.idempotence == "msgId"
    inserts = options.idempotence == "insert"
    seen: set[str] = set()
    for number, row in enumerate(rows):
        if inserts and row.subject in seen:
            raise SchemaError(
                f"idempotence=insert keeps one message a subject, but {row.subject!r} comes twice"
            )
        if inserts:
            seen.add(row.subject)
        own = row.identity if options.idempotence in {"msgId", "none"} else None
        yield PublishRequest(
            subject=row.subject,
            data=row.data,
            headers=row.headers,
            msg_id=own or (identity.row(number) if numbered else None),
            expected_stream=options.stream,
            expected_last_subject_seq=0 if inserts else None,
            ttl=row.ttl,
        )


def _is_there(failure: PublishFailure) -> bool:
    """Tell whether the subject holds a message already: an earlier attempt stored it."""
    error: BaseException | None = failure.error
    if isinstance(error, OutcomeUnknown):
        # It was sent twice, because the first answer was lost: either of the two may be stored.
        error = error.__cause__
    return isinstance(error, WrongLastSequence | MessageExists)

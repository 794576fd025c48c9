"""What a writing task does, in the modes where rows are published one by one."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterable, Iterator
from functools import partial
from typing import TYPE_CHECKING, Final

from twinstream.errors import MessageExists, MessageIdInProcess, OutcomeUnknown, WrongLastSequence
from twinstream.core.publish.request import PublishFailure, PublishRequest
from twinstream.spark.errors import SchemaError
from twinstream.spark.sink.row_key import RowIds
from twinstream.spark.sink.options import SinkOptions
from twinstream.spark.sink.report import JetStreamCommit
from twinstream.spark.sink.rows import OutMessage
from twinstream.spark.sink.task_identity import TaskIdentity

if TYPE_CHECKING:
    from twinstream.models import PubAck
    from js_sync import JetStream

__all__ = ["publish_rows"]

#: How often a row is sent again, and seconds between: a leader that was lost is followed within
#: nine seconds, and a lost answer is missed after a tenth of ``ackTimeoutMs``.
_RETRIES: Final = 9
_RETRY_WAIT: Final = 1.0

#: Seconds that rows wait at most, and without a known stream, until their ids may be used again.
_LONGEST_HOLD: Final = 600.0
_USUAL_WINDOW: Final = 120.0


def publish_rows(
    jet: JetStream,
    options: SinkOptions,
    rows: Iterator[OutMessage],
    identity: TaskIdentity,
    window: float | None = None,
) -> JetStreamCommit:
    """Publish rows with many acknowledgements under way, and count what was stored.

    ``window`` is for how many seconds the stream keeps message ids. A leader that lost a message in
    a change of leaders may refuse its id for that long, and Spark's attempts would be over by then:
    such rows are published again until it is over.

    Raises the server's error for the first row that it does not take.
    """
    commit = JetStreamCommit(0, 0)
    held: list[PublishRequest] = []

    def take(outcome: PubAck | PublishFailure) -> None:
        if isinstance(outcome, PublishFailure) and _is_in_process(outcome):
            held.append(outcome.request)
            if len(held) <= options.max_in_flight:
                return
        _count(commit, options, outcome)

    requests = _requests(options, rows, identity)
    _publish(jet, options, requests, take, timeout=options.ack_timeout, retries=_RETRIES)
    if held:
        hold = min(_USUAL_WINDOW if window is None else window, _LONGEST_HOLD)
        timeout = hold + options.ack_timeout
        text = (
            f"the stream takes {len(held)} rows for being stored, {held[0].subject} the first of"
            f" them: they are published again, for {timeout:g} s at most"
        )
        warnings.warn(text, RuntimeWarning, stacklevel=2)
        _publish(jet, options, held, partial(_count, commit, options), timeout=timeout)
    return commit


def _publish(
    jet: JetStream,
    options: SinkOptions,
    requests: Iterable[PublishRequest],
    take: Callable[[PubAck | PublishFailure], None],
    *,
    timeout: float,
    retries: int | None = None,
) -> None:
    with jet.publish_many(
        requests,
        window=options.max_in_flight,
        timeout=timeout,
        retries=retries,
        retry_wait=_RETRY_WAIT,
    ) as outcomes:
        for outcome in outcomes:
            take(outcome)


def _count(commit: JetStreamCommit, options: SinkOptions, outcome: PubAck | PublishFailure) -> None:
    if isinstance(outcome, PublishFailure):
        if options.idempotence != "insert" or not _is_there(outcome):
            raise outcome.error
        commit.present += 1
    elif outcome.duplicate:
        commit.present += 1
    else:
        commit.stored += 1


def _requests(
    options: SinkOptions, rows: Iterator[OutMessage], identity: TaskIdentity
) -> Iterator[PublishRequest]:
    ids = RowIds(identity) if options.idempotence == "msgId" else None
    inserts = options.idempotence == "insert"
    seen: set[str] = set()
    for row in rows:
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
            msg_id=own or (ids.next_id(row) if ids is not None else None),
            expected_stream=options.stream,
            expected_last_subject_seq=0 if inserts else None,
            ttl=row.ttl,
        )


def _is_there(failure: PublishFailure) -> bool:
    """Tell whether the subject holds a message already: an earlier attempt stored it."""
    return isinstance(_refusal(failure), WrongLastSequence | MessageExists)


def _is_in_process(failure: PublishFailure) -> bool:
    """Tell whether the stream takes the message for one that is being stored."""
    return isinstance(_refusal(failure), MessageIdInProcess)


def _refusal(failure: PublishFailure) -> BaseException | None:
    error: BaseException = failure.error
    # It was sent twice, because the first answer was lost: either of the two may be stored.
    return error.__cause__ if isinstance(error, OutcomeUnknown) else error

"""Publish the rows of a write task one by one, for all values of `idempotence` but `ledger`."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterable, Iterator
from functools import partial
from typing import TYPE_CHECKING, Final

from twinstream.core.server_faults.final_reply import is_in_flight
from twinstream.errors import (
    MessageExists,
    MessageIdInProcess,
    OutcomeUnknown,
    PublishFailure,
    WrongLastSequence,
)
from twinstream.records.publish_request import PublishRequest
from twinstream.spark.client.retry import Patience
from twinstream.spark.errors import SchemaError
from twinstream.spark.sink.options import SinkOptions
from twinstream.spark.sink.report import JetStreamCommit
from twinstream.spark.sink.row_key import RowIds
from twinstream.spark.sink.rows import OutMessage
from twinstream.spark.sink.task_identity import TaskIdentity

if TYPE_CHECKING:
    from js_sync import JetStream
    from twinstream.models import PubAck

__all__ = ["publish_rows"]

# The maximum number of retries of a row, and the seconds before each retry. After a leader is
# lost, a new leader is elected within nine seconds. A response counts as lost after a tenth of
# `ackTimeoutMs`.
_RETRIES: Final = 9
_RETRY_WAIT: Final = 1.0

# If the stream reports the message IDs of rows as in process, the rows are published again for as
# long as the stream's duplicate window, but not for longer than `_LONGEST_HOLD` seconds. If the
# duplicate window is unknown, `_USUAL_WINDOW` seconds are used.
_LONGEST_HOLD: Final = 600.0
_USUAL_WINDOW: Final = 120.0


def publish_rows(
    jet: JetStream,
    options: SinkOptions,
    rows: Iterator[OutMessage],
    identity: TaskIdentity,
    window: float | None = None,
) -> JetStreamCommit:
    """Publish rows with many pending acknowledgements, and return the numbers of rows.

    `window` is the stream's duplicate window in seconds, or `None` if it is unknown. After a
    leader change, a stream may report a message ID as in process for up to `window` seconds,
    although the message is lost. All of Spark's attempts of the task would fail in this time. So
    such rows, up to `maxInFlight` of them, are published again until the window has passed.

    An insert is refused if another write of the subject is in flight. That write may fail, for
    example because its leader was cut off. So such rows are also published again.

    Raises the publish error of the first row that fails for another reason. With
    `idempotence=insert`, a row whose subject already has a message is counted as `present`, and
    two rows with the same subject raise `SchemaError`.
    """
    commit = JetStreamCommit(0, 0)
    undecided: list[PublishFailure] = []
    is_undecided = _is_in_flight if options.idempotence == "insert" else _is_in_process

    def take(outcome: PubAck | PublishFailure) -> None:
        if isinstance(outcome, PublishFailure) and is_undecided(outcome):
            undecided.append(outcome)
            if len(undecided) <= options.max_in_flight:
                return
        _count(commit, options, outcome)  # raises the error if too many rows are undecided

    requests = _requests(options, rows, identity)
    _publish(jet, options, requests, take, timeout=options.ack_timeout, retries=_RETRIES)
    if undecided and options.idempotence == "insert":
        _insert_again(jet, options, undecided, commit)
    elif undecided:
        hold = min(_USUAL_WINDOW if window is None else window, _LONGEST_HOLD)
        timeout = hold + options.ack_timeout
        text = (
            f"the stream reports the message IDs of {len(undecided)} rows as in process, the first"
            f" for {undecided[0].request.subject}: these rows are published again, for"
            f" {timeout:g} s at most"
        )
        warnings.warn(text, RuntimeWarning, stacklevel=2)
        repeats = [each.request for each in undecided]
        _publish(jet, options, repeats, partial(_count, commit, options), timeout=timeout)
    return commit


def _insert_again(
    jet: JetStream, options: SinkOptions, failures: list[PublishFailure], commit: JetStreamCommit
) -> None:
    """Insert rows again while other writes of their subjects are in flight.

    Raises the server's error if such a write is in flight for longer than `ackTimeoutMs`.
    """
    patience = Patience(options.ack_timeout)
    while failures:
        patience.spend(failures[0].error)
        undecided: list[PublishFailure] = []

        # The default value binds the list of this round.
        def take(
            outcome: PubAck | PublishFailure, undecided: list[PublishFailure] = undecided
        ) -> None:
            if isinstance(outcome, PublishFailure) and _is_in_flight(outcome):
                undecided.append(outcome)
            else:
                _count(commit, options, outcome)

        requests = [each.request for each in failures]
        _publish(jet, options, requests, take, timeout=options.ack_timeout, retries=_RETRIES)
        failures = undecided


def _publish(
    jet: JetStream,
    options: SinkOptions,
    requests: Iterable[PublishRequest],
    take: Callable[[PubAck | PublishFailure], None],
    *,
    timeout: float,
    retries: int | None = None,
) -> None:
    """Publish requests, and call `take` with the outcome of each."""
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
    """Count a row as stored or present in `commit`, or raise its error."""
    if isinstance(outcome, PublishFailure):
        if options.idempotence != "insert" or not _is_present(outcome):
            raise outcome.error
        commit.present += 1
    elif outcome.duplicate:
        commit.present += 1
    else:
        commit.stored += 1


def _requests(
    options: SinkOptions, rows: Iterator[OutMessage], identity: TaskIdentity
) -> Iterator[PublishRequest]:
    """Yield a request for each row, with the ID or the expectation that `idempotence` needs.

    With `insert`, raises `SchemaError` for the second row with a subject.
    """
    ids = RowIds(identity) if options.idempotence == "msgId" else None
    inserts = options.idempotence == "insert"
    seen: set[str] = set()
    for row in rows:
        if inserts and row.subject in seen:
            raise SchemaError(
                "idempotence=insert keeps one message per subject, but"
                f" {row.subject!r} occurs twice"
            )
        if inserts:
            seen.add(row.subject)
        given_id = row.identity if options.idempotence in {"msgId", "none"} else None
        yield PublishRequest(
            subject=row.subject,
            data=row.data,
            headers=row.headers,
            msg_id=given_id or (ids.next_id(row) if ids is not None else None),
            expected_stream=options.stream,
            expected_last_subject_seq=0 if inserts else None,  # 0: the subject has no message
            ttl=row.ttl,
        )


def _is_present(failure: PublishFailure) -> bool:
    """Return whether the server refused the row because its subject already has a message."""
    is_refused = isinstance(_refusal(failure), WrongLastSequence | MessageExists)
    return is_refused and not _is_in_flight(failure)


def _is_in_flight(failure: PublishFailure) -> bool:
    """Return whether the server refused the row because of a write in flight, which may fail."""
    return is_in_flight(_refusal(failure))


def _is_in_process(failure: PublishFailure) -> bool:
    """Return whether the stream reports the row's message ID as in process."""
    return isinstance(_refusal(failure), MessageIdInProcess)


def _refusal(failure: PublishFailure) -> BaseException | None:
    error: BaseException = failure.error
    # `OutcomeUnknown` means that a response was lost and that the row was sent again. The cause of
    # the exception is the server's response to the repeated message.
    return error.__cause__ if isinstance(error, OutcomeUnknown) else error

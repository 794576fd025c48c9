"""The decisions of the publish engine: a table of failures, and sequences of events."""

from __future__ import annotations

import pytest

from twinstream.core.object_store.retry import ObjectRetry
from twinstream.core.publish.publish_engine import (
    Action,
    Explain,
    Fail,
    Listen,
    Prove,
    PublishEngine,
    Send,
)
from twinstream.core.publish.retry_pauses import RetryPolicy
from twinstream.errors import (
    BadArgument,
    ConnectionClosed,
    ConnectionLost,
    InvalidResponse,
    JetStreamError,
    JetStreamNotEnabled,
    MessageIdInProcess,
    NoLeader,
    NoResponders,
    NoStream,
    OutcomeUnknown,
    PermissionDenied,
    RequestTimeout,
    StoreFailed,
    TwinstreamError,
    WrongLastSequence,
)

PAUSE = 0.25
LONG = 60.0


def api(cls: type[JetStreamError], err_code: int) -> JetStreamError:
    return cls("no", code=400, err_code=err_code)


UNSERVED = NoResponders("unserved")
SILENCE = RequestTimeout("silence")
LOST = ConnectionLost("lost")
BUSY = api(JetStreamError, 10167)
IN_PROCESS = api(MessageIdInProcess, 10158)
NOT_LEADER = api(JetStreamError, 10009)
WRONG = api(WrongLastSequence, 10071)
STEPPED_DOWN = JetStreamError("raft: not leader", code=503, err_code=0)
FULL = api(StoreFailed, 10077)
OFF = api(JetStreamNotEnabled, 10039)
DENIED = PermissionDenied("denied")
INVALID = BadArgument("invalid")
CLOSED = ConnectionClosed("closed")
STRANGE = InvalidResponse("strange")


def engine(
    *,
    repeatable: bool = True,
    may_be_stored: bool = False,
    attempts: int = 1,
    policy: RetryPolicy | None = None,
) -> PublishEngine:
    made = PublishEngine("s", policy or RetryPolicy(2, PAUSE), repeatable)
    made.attempts, made.may_be_stored = attempts, may_be_stored
    return made


@pytest.mark.parametrize(
    ("error", "repeatable", "may_be_stored", "attempts", "action"),
    [
        (UNSERVED, False, False, 1, Send(PAUSE)),
        (UNSERVED, True, True, 2, Send(PAUSE)),
        (UNSERVED, True, False, 3, Explain(silent=False)),
        (SILENCE, True, False, 1, Send(0.0)),
        (SILENCE, False, False, 1, Explain(silent=True)),
        (SILENCE, True, True, 3, Explain(silent=True)),
        (LOST, True, False, 1, Send(0.0)),
        (LOST, False, False, 1, Fail(LOST)),
        (LOST, True, False, 3, Fail(LOST)),
        (BUSY, False, False, 1, Send(PAUSE)),
        (BUSY, False, False, 3, Fail(BUSY)),
        (BUSY, True, True, 3, Prove(BUSY)),
        (NOT_LEADER, False, False, 1, Send(PAUSE)),
        (STEPPED_DOWN, False, False, 1, Send(PAUSE)),
        (STEPPED_DOWN, False, False, 3, Fail(STEPPED_DOWN)),
        (IN_PROCESS, True, False, 1, Send(PAUSE)),
        (IN_PROCESS, True, False, 3, Fail(IN_PROCESS)),
        (OFF, True, False, 1, Explain(silent=False)),
        (WRONG, True, False, 1, Fail(WRONG)),
        (WRONG, True, True, 1, Prove(WRONG)),
        (FULL, True, True, 3, Prove(FULL)),
        (FULL, True, False, 1, Fail(FULL)),
        (DENIED, True, False, 1, Fail(DENIED)),
        (DENIED, True, True, 1, Prove(DENIED)),
        (CLOSED, True, True, 1, Fail(CLOSED)),
        (STRANGE, True, False, 1, Fail(STRANGE)),
        (STRANGE, True, True, 1, Fail(STRANGE)),
        (INVALID, True, False, 1, Fail(INVALID)),
        (INVALID, True, True, 1, Prove(INVALID)),
    ],
)
def test_what_follows_a_failure(
    error: TwinstreamError, repeatable: bool, may_be_stored: bool, attempts: int, action: Action
) -> None:
    deciding = engine(repeatable=repeatable, may_be_stored=may_be_stored, attempts=attempts)
    assert deciding.failed(error, LONG) == action
    assert deciding.error is error
    sent_again = isinstance(action, Send) and error in (SILENCE, LOST)
    assert deciding.may_be_stored is (may_be_stored or sent_again)


@pytest.mark.parametrize(
    ("error", "left", "action"),
    [
        (UNSERVED, PAUSE, Explain(silent=False)),
        (BUSY, PAUSE, Fail(BUSY)),
        (BUSY, PAUSE + 0.01, Send(PAUSE)),
        (LOST, 0.0, Fail(LOST)),
        (LOST, 0.01, Send(0.0)),
        (SILENCE, 0.0, Explain(silent=True)),
    ],
)
def test_no_attempt_follows_that_has_no_time(
    error: TwinstreamError, left: float, action: Action
) -> None:
    assert engine().failed(error, left) == action


@pytest.mark.parametrize(
    ("repeatable", "attempts", "expected"),
    [(True, 1, True), (True, 2, True), (True, 3, False), (False, 1, False)],
)
def test_which_attempts_are_followed_by_another(
    repeatable: bool, attempts: int, expected: bool
) -> None:
    deciding = engine(repeatable=repeatable, attempts=attempts)
    assert deciding.may_repeat is expected
    assert isinstance(deciding.silent(LONG), Send) is expected


@pytest.mark.parametrize(
    ("error", "may_be_stored", "action"),
    [
        (SILENCE, False, Fail(SILENCE)),
        (CLOSED, False, Fail(CLOSED)),
        (INVALID, False, Fail(INVALID)),
        (INVALID, True, Prove(INVALID)),
        (DENIED, True, Prove(DENIED)),
        (LOST, False, Send(0.0)),
    ],
)
def test_what_follows_an_attempt_that_was_not_sent(
    error: TwinstreamError, may_be_stored: bool, action: Action
) -> None:
    assert engine(may_be_stored=may_be_stored).unsent(error, LONG) == action


def final(action: Action) -> TwinstreamError:
    assert isinstance(action, Fail)
    return action.error


def test_without_a_stream_the_reason_is_the_outcome() -> None:
    why = NoStream("no stream")
    deciding = engine(attempts=3)
    assert deciding.failed(UNSERVED, LONG) == Explain(silent=False)
    assert final(deciding.explained(why, LONG)) is why


def test_an_earlier_attempt_without_a_response_leaves_the_outcome_open() -> None:
    why = NoStream("no stream")
    deciding = engine()
    assert deciding.failed(LOST, LONG) == Send(0.0)
    deciding.attempts = 3
    deciding.failed(UNSERVED, LONG)
    error = final(deciding.explained(why, LONG))
    assert isinstance(error, OutcomeUnknown)
    assert error.__cause__ is why
    assert "may be stored; then: no stream" in str(error)


@pytest.mark.parametrize(("attempts", "tried"), [(1, "1 attempt,"), (3, "3 attempts,")])
def test_no_response_may_mean_that_it_is_stored(attempts: int, tried: str) -> None:
    why = NoLeader("no leader")
    deciding = engine(attempts=attempts, repeatable=False)
    assert deciding.silent(LONG) == Explain(silent=True)
    error = final(deciding.explained(why, LONG))
    assert isinstance(error, RequestTimeout)
    assert error.__cause__ is why
    assert str(error) == f"s: no acknowledgement in time after {tried} it may be stored; no leader"


def test_another_responder_is_named_in_the_outcome() -> None:
    deciding = engine(repeatable=False)
    deciding.stray = InvalidResponse("s: not an acknowledgement")
    deciding.silent(0.0)
    error = final(deciding.explained(NoStream("no stream"), 0.0))
    assert isinstance(error, InvalidResponse)
    assert str(error) == "s: not an acknowledgement; no stream"


def test_a_response_while_the_reason_is_asked_counts() -> None:
    deciding = engine(repeatable=False)
    deciding.silent(LONG)
    deciding.error = UNSERVED
    why = NoStream("no stream")
    assert final(deciding.explained(why, LONG)) is why


def test_a_leader_is_waited_for_until_the_deadline() -> None:
    why = NoLeader("no leader")
    deciding = engine(attempts=3, policy=RetryPolicy(2, PAUSE, waits_for_leader=True))
    assert deciding.failed(UNSERVED, LONG) == Explain(silent=False)
    assert deciding.explained(why, LONG) == Send(PAUSE)
    assert deciding.error is why
    for _ in range(5):
        # It is known by now, so the reason is not asked again.
        deciding.attempts += 1
        assert deciding.failed(UNSERVED, LONG) == Send(PAUSE)
    assert final(deciding.failed(UNSERVED, PAUSE)) is why


def test_without_time_no_leader_is_waited_for() -> None:
    why = NoLeader("no leader")
    deciding = engine(attempts=3, policy=RetryPolicy(2, PAUSE, waits_for_leader=True))
    deciding.failed(UNSERVED, LONG)
    assert final(deciding.explained(why, PAUSE)) is why


def test_an_id_in_process_is_waited_for_where_a_leader_is() -> None:
    deciding = engine(attempts=10, policy=RetryPolicy(2, PAUSE, waits_for_leader=True))
    assert deciding.failed(IN_PROCESS, LONG) == Send(PAUSE)
    assert deciding.failed(IN_PROCESS, PAUSE) == Fail(IN_PROCESS)


def test_parts_of_an_object_survive_any_number_of_lost_connections() -> None:
    deciding = engine(attempts=100, policy=ObjectRetry(2, PAUSE))
    assert deciding.failed(LOST, 1.0) == Send(0.0)
    assert deciding.failed(LOST, 0.0) == Fail(LOST)


def wrong(last: int) -> WrongLastSequence:
    return WrongLastSequence(f"wrong last sequence: {last}", code=400, err_code=10071)


def expecting(expected: int | None, policy: RetryPolicy | None = None) -> PublishEngine:
    return PublishEngine("s", policy or RetryPolicy(2, PAUSE), True, expected)


@pytest.mark.parametrize(
    ("expected", "last", "left", "retries", "repeated"),
    [
        (9, 4, LONG, 2, True),
        (9, 0, LONG, 2, True),
        (9, 9, LONG, 2, False),
        (9, 10, LONG, 2, False),
        (0, 4, LONG, 2, False),
        (None, 4, LONG, 2, False),
        (9, 4, PAUSE, 2, False),
        (9, 4, LONG, 0, False),
    ],
)
def test_refusals_by_replicas_that_lack_messages_are_repeated(
    expected: int | None, last: int, left: float, retries: int, repeated: bool
) -> None:
    refusal = wrong(last)
    deciding = expecting(expected, RetryPolicy(retries, PAUSE))
    action = deciding.failed(refusal, left)
    behind = expected is not None and last < expected
    last_try = Listen(0.1, Fail(refusal)) if behind else Fail(refusal)
    assert action == (Send(PAUSE) if repeated else last_try)
    assert deciding.error is refusal


def test_second_refusal_by_a_replica_that_lacks_messages_counts() -> None:
    deciding = expecting(9)
    assert deciding.failed(wrong(4), LONG) == Send(PAUSE)
    deciding.attempts += 1
    refusal = wrong(4)
    assert deciding.failed(refusal, LONG) == Listen(0.1, Fail(refusal))


def test_the_leaders_refusal_of_the_same_attempt_is_final() -> None:
    deciding = expecting(9)
    assert deciding.failed(wrong(4), LONG) == Send(PAUSE)
    refusal = wrong(10)
    assert deciding.failed(refusal, LONG) == Fail(refusal)


def test_a_write_in_flight_may_be_that_of_a_former_leader() -> None:
    refusal = WrongLastSequence("wrong last sequence", code=400, err_code=10164)
    assert expecting(9).failed(refusal, LONG) == Listen(0.1, Fail(refusal))
    assert expecting(9).failed(refusal, 0.05) == Listen(0.05, Fail(refusal))
    assert expecting(None).failed(refusal, LONG) == Fail(refusal)
    deciding = expecting(9)
    assert deciding.failed(LOST, LONG) == Send(0.0)
    deciding.attempts += 1
    assert deciding.failed(refusal, LONG) == Listen(0.1, Prove(refusal))


def test_a_replica_that_lacks_messages_leaves_the_outcome_open() -> None:
    deciding = expecting(9)
    assert deciding.failed(wrong(4), LONG) == Send(PAUSE)
    deciding.attempts += 1
    assert deciding.failed(LOST, LONG) == Send(0.0)
    deciding.attempts += 1
    refusal = wrong(10)
    assert deciding.failed(refusal, LONG) == Prove(refusal)


def test_after_a_lost_response_a_late_replica_proves_nothing() -> None:
    deciding = expecting(9)
    assert deciding.failed(LOST, LONG) == Send(0.0)
    deciding.attempts += 1
    assert deciding.failed(wrong(4), LONG) == Send(PAUSE)
    deciding.attempts += 1
    refusal = wrong(4)
    assert deciding.failed(refusal, LONG) == Listen(0.1, Prove(refusal))

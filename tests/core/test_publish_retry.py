"""When a publish is sent again, and how much may be under way."""

from __future__ import annotations

import pickle
from datetime import timedelta
from typing import Any

import pytest

from twinstream.core.publish.limits import PublishLimits
from twinstream.core.publish.request import PublishFailure, PublishRequest
from twinstream.core.publish.retry import (
    RetryPolicy,
    Step,
    leaves_doubt,
    may_get_leader,
    needs_pause,
    next_step,
    retry_policy,
)
from twinstream.errors import (
    BadAnswer,
    BadArgument,
    ConnectionClosed,
    ConnectionLost,
    JetStreamError,
    NoLeader,
    NoResponders,
    NoStream,
    PermissionDenied,
    PublishFailures,
    RequestTimeout,
    StoreRefused,
    TwinstreamError,
    WrongLastSequence,
)


def api(cls: type[JetStreamError], err_code: int) -> JetStreamError:
    return cls("no", code=400, err_code=err_code)


NOBODY = NoResponders("x")
SILENCE = RequestTimeout("x")
LOST = ConnectionLost("x")
BUSY = api(JetStreamError, 10167)
WRONG = api(WrongLastSequence, 10071)
STEPPED_DOWN = JetStreamError("raft: not leader", code=503, err_code=0)
FULL = api(StoreRefused, 10077)


@pytest.mark.parametrize(
    ("error", "repeatable", "doubt", "left", "step"),
    [
        (NOBODY, False, False, 1, Step.REPEAT),
        (NOBODY, True, True, 1, Step.REPEAT),
        (NOBODY, True, False, 0, Step.EXPLAIN),
        (SILENCE, True, False, 1, Step.REPEAT),
        (SILENCE, False, False, 1, Step.EXPLAIN),
        (SILENCE, True, True, 0, Step.EXPLAIN),
        (LOST, True, False, 1, Step.REPEAT),
        (LOST, False, False, 1, Step.FAIL),
        (LOST, True, False, 0, Step.FAIL),
        (BUSY, False, False, 1, Step.REPEAT),
        (BUSY, False, False, 0, Step.FAIL),
        (BUSY, True, True, 0, Step.PROVE),
        (STEPPED_DOWN, False, False, 1, Step.REPEAT),
        (STEPPED_DOWN, False, False, 0, Step.FAIL),
        (WRONG, True, False, 1, Step.FAIL),
        (WRONG, True, True, 1, Step.PROVE),
        (FULL, True, True, 0, Step.PROVE),
        (FULL, True, False, 2, Step.FAIL),
        (PermissionDenied("x"), True, False, 2, Step.FAIL),
        (PermissionDenied("x"), True, True, 2, Step.PROVE),
        (ConnectionClosed("x"), True, True, 2, Step.FAIL),
        (BadAnswer("x"), True, False, 2, Step.FAIL),
        (BadArgument("x"), True, False, 2, Step.FAIL),
        (BadArgument("x"), True, True, 2, Step.PROVE),
    ],
)
def test_the_next_step(
    error: TwinstreamError, repeatable: bool, doubt: bool, left: int, step: Step
) -> None:
    assert next_step(error, repeatable=repeatable, doubt=doubt, left=left) is step


def test_what_leaves_doubt_and_what_needs_a_pause() -> None:
    assert [leaves_doubt(each) for each in (SILENCE, LOST, NOBODY, BUSY)] == [
        True,
        True,
        False,
        False,
    ]
    assert [needs_pause(each) for each in (SILENCE, LOST, NOBODY, BUSY)] == [
        False,
        False,
        True,
        True,
    ]


def test_the_time_is_shared_by_the_attempts_that_may_follow() -> None:
    policy = RetryPolicy(2, timedelta(milliseconds=100))
    assert policy.wait == 0.1
    assert policy.patience(6.0, True, 0) == 2.0
    assert policy.patience(4.0, True, 1) == 2.0
    # The last attempt, and one that is the only one, leave time for asking why.
    assert policy.patience(2.0, True, 2) == pytest.approx(1.6)
    assert policy.patience(10.0, False, 0) == 9.0
    assert RetryPolicy(0).patience(10.0, True, 0) == 9.0


def test_missing_leader_may_still_be_elected() -> None:
    silent = NoResponders("why is unknown")
    silent.__cause__ = RequestTimeout("no answer")
    refused = NoResponders("why is unknown")
    refused.__cause__ = PermissionDenied("may not ask")
    reasons = [NoLeader("none"), silent, refused, NoStream("none"), NoResponders("unknown")]
    assert [may_get_leader(why) for why in reasons] == [True, True, False, False, False]


def test_by_default_a_leader_is_waited_for_unless_without_pauses() -> None:
    assert retry_policy(None, 0.25) == RetryPolicy(2, 0.25, waits_for_leader=True)
    assert retry_policy(2, 0.25) == RetryPolicy(2, 0.25)
    assert retry_policy(None, 0) == RetryPolicy(2, 0)


@pytest.mark.parametrize(
    ("arguments", "told"),
    [
        ({"retries": -1}, "retries"),
        ({"retries": True}, "retries"),
        ({"retries": 1.0}, "retries"),
        ({"wait": -1}, "retry_wait"),
        ({"wait": float("inf")}, "retry_wait"),
    ],
)
def test_policies_that_cannot_be(arguments: dict[str, Any], told: str) -> None:
    with pytest.raises(BadArgument, match=told):
        RetryPolicy(**arguments)


def test_a_window_is_full_by_count_or_bytes() -> None:
    limits = PublishLimits(window=3, window_bytes=100, timeout=1.0, retry=RetryPolicy())
    assert not limits.is_full(2, 50, 50)
    assert limits.is_full(3, 0, 1)
    assert limits.is_full(1, 50, 51)
    # Larger than everything: it goes alone.
    assert not limits.is_full(0, 0, 1000)


@pytest.mark.parametrize("wrong", [0, -1, True, 1.5])
def test_windows_that_cannot_be(wrong: Any) -> None:
    for name in ("window", "window_bytes"):
        with pytest.raises(BadArgument, match=f"{name} must be a number"):
            PublishLimits(**{name: wrong}, timeout=1.0, retry=RetryPolicy())


def test_failures_name_the_first_of_them_and_survive_pickling() -> None:
    failures = [
        PublishFailure(PublishRequest(subject=f"s{n}"), NoStream(f"s{n}")) for n in range(5)
    ]
    error = pickle.loads(pickle.dumps(PublishFailures(failures, 7)))
    assert str(error) == "7 messages were not acknowledged: s0; s1; s2"
    assert (error.count, len(error.failures)) == (7, 5)
    assert error.failures[4].request == failures[4].request
    assert str(PublishFailures(failures[:1], 1)) == "1 message was not acknowledged: s0"

"""When a publish is sent again, and how much may be in flight."""

from __future__ import annotations

import pickle
from datetime import timedelta
from typing import Any

import pytest

from twinstream.core.publish.limits import PublishLimits
from twinstream.core.publish.retry_pauses import (
    RetryPolicy,
    may_get_leader,
    needs_pause,
    retry_policy,
)
from twinstream.errors import (
    BadArgument,
    ConnectionLost,
    JetStreamError,
    NoLeader,
    NoResponders,
    NoStream,
    PermissionDenied,
    PublishFailure,
    PublishFailures,
    RequestTimeout,
    TwinstreamError,
)
from twinstream.records.publish_request import PublishRequest


@pytest.mark.parametrize(
    ("error", "pause"),
    [
        (RequestTimeout("x"), False),
        (ConnectionLost("x"), False),
        (NoResponders("x"), True),
        (JetStreamError("no", code=429, err_code=10167), True),
    ],
)
def test_only_what_was_refused_needs_a_pause(error: TwinstreamError, pause: bool) -> None:
    assert needs_pause(error) is pause


def test_the_time_is_shared_by_the_attempts_that_may_follow() -> None:
    policy = RetryPolicy(2, timedelta(milliseconds=100))
    assert policy.wait == 0.1
    assert policy.patience(6.0, True, 0) == 2.0
    assert policy.patience(4.0, True, 1) == 2.0
    # The last attempt, and one that is the only one, leave time for asking why.
    assert policy.patience(2.0, True, 2) == pytest.approx(1.6)
    assert policy.patience(10.0, False, 0) == 9.0
    assert RetryPolicy(0).patience(10.0, True, 0) == 9.0
    # The last attempt of a pipelined message ends before the deadline, however late it was sent.
    assert policy.last_due(100.0, 110.0) == 109.0
    assert policy.last_due(109.0, 110.0) == pytest.approx(109.8)
    assert policy.last_due(111.0, 110.0) == 111.0


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
    ("arguments", "reason"),
    [
        ({"retries": -1}, "retries"),
        ({"retries": True}, "retries"),
        ({"retries": 1.0}, "retries"),
        ({"wait": -1}, "retry_wait"),
        ({"wait": float("inf")}, "retry_wait"),
    ],
)
def test_policies_that_cannot_be(arguments: dict[str, Any], reason: str) -> None:
    with pytest.raises(BadArgument, match=reason):
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

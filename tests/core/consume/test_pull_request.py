"""Limits of pull requests: what is refused before it is sent, defaults, and the JSON."""

from __future__ import annotations

import json
from datetime import timedelta
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from twinstream.core.consume.buffer_limits import buffer_limits
from twinstream.core.consume.pull_request import (
    MANY,
    Priority,
    PullBounds,
    PullLimits,
    fetch_limits,
    request_body,
)
from twinstream.core.deadline import seconds
from twinstream.errors import BadArgument

INFINITE = float("inf")
NOTHING: dict[str, Any] = {
    "max_messages": None,
    "max_bytes": None,
    "expires": None,
    "heartbeat": None,
    "threshold_messages": None,
    "threshold_bytes": None,
}


def buffer(**given: Any) -> PullLimits:
    return buffer_limits(**(NOTHING | given))


@pytest.mark.parametrize(
    ("timeout", "wait", "expires", "heartbeat", "no_wait"),
    [
        (5, "full", 5.0, INFINITE, False),
        (5, "first", 5.0, INFINITE, True),
        (5, "none", None, INFINITE, True),
        (0, "full", None, INFINITE, True),
        (10, "full", 10.0, 5.0, False),
        (12, "first", 12.0, 5.0, True),
        (timedelta(minutes=5), "full", 300.0, 5.0, False),
    ],
)
def test_limits_of_a_fetch(
    timeout: Any, wait: Any, expires: float | None, heartbeat: float, no_wait: bool
) -> None:
    limits = fetch_limits(3, 100, timeout, wait)
    assert (limits.max_messages, limits.max_bytes) == (3, 100)
    assert (limits.expires, limits.heartbeat, limits.no_wait) == (expires, heartbeat, no_wait)


def test_a_fetch_by_bytes_alone_asks_for_many() -> None:
    limits = fetch_limits(None, 100, 5, "full")
    assert (limits.max_messages, limits.max_bytes) == (MANY, 100)


@pytest.mark.parametrize(
    ("timeout", "heartbeat"), [(5, 2.5), (60, 30), (1, timedelta(seconds=0.5))]
)
def test_the_heartbeat_of_a_fetch_may_be_given(timeout: float, heartbeat: Any) -> None:
    limits = fetch_limits(1, None, timeout, "full", None, heartbeat)
    asked = json.loads(request_body(1, None, limits))
    assert asked["idle_heartbeat"] == round(seconds(heartbeat) * 1e9)


@pytest.mark.parametrize(
    ("arguments", "reason"),
    [
        ((0, None, 5, "full"), "max_messages"),
        ((-1, None, 5, "full"), "max_messages"),
        ((True, None, 5, "full"), "max_messages"),
        ((1.5, None, 5, "full"), "max_messages"),
        ((1, 0, 5, "full"), "max_bytes"),
        ((1, None, -1, "full"), "timeout"),
        ((1, None, None, "full"), "timeout"),
        ((1, None, INFINITE, "full"), "timeout must be finite"),
        ((1, None, 5, "some"), "wait must be"),
        ((None, None, 5, "full"), "max_messages, max_bytes or both"),
        ((None, 0, 5, "full"), "max_bytes"),
        ((1, None, 5, "full", None, 0.4), "0.5 to 30"),
        ((1, None, 5, "full", None, 3), "half of timeout 5 s"),
        ((1, None, 5, "none", None, 1), "a fetch that waits"),
        ((1, None, 0, "full", None, 1), "a fetch that waits"),
    ],
)
def test_invalid_fetch_is_refused(arguments: Any, reason: str) -> None:
    with pytest.raises(BadArgument, match=reason):
        fetch_limits(*arguments)


@pytest.mark.parametrize(
    ("given", "wanted"),
    [
        ({}, (500, None, 250, 0, 30.0, 5.0)),
        ({"max_messages": 1}, (1, None, 0, 0, 30.0, 5.0)),
        ({"max_messages": 3}, (3, None, 1, 0, 30.0, 5.0)),
        ({"max_messages": 10, "threshold_messages": 9}, (10, None, 9, 0, 30.0, 5.0)),
        ({"max_bytes": 1000}, (MANY, 1000, MANY // 2, 500, 30.0, 5.0)),
        ({"max_bytes": 1000, "threshold_bytes": 0}, (MANY, 1000, MANY // 2, 0, 30.0, 5.0)),
        ({"expires": 1}, (500, None, 250, 0, 1.0, 0.5)),
        ({"expires": 600}, (500, None, 250, 0, 600.0, 5.0)),
        ({"expires": 8}, (500, None, 250, 0, 8.0, 4.0)),
        ({"expires": 20, "heartbeat": 0.5}, (500, None, 250, 0, 20.0, 0.5)),
    ],
)
def test_limits_of_a_buffer(given: dict[str, Any], wanted: tuple[Any, ...]) -> None:
    limits = buffer(**given)
    assert (
        limits.max_messages,
        limits.max_bytes,
        limits.threshold,
        limits.threshold_bytes,
        limits.expires,
        limits.heartbeat,
    ) == wanted


BOUNDS = PullBounds(max_batch=100, max_expires=12.0, max_age=15.0, pull_every=20.0)


def test_requests_keep_to_the_consumers_bounds() -> None:
    limits = buffer(bounds=BOUNDS)
    assert (limits.max_messages, limits.max_batch, limits.max_age) == (500, 100, 15.0)
    assert (limits.expires, limits.heartbeat) == (12.0, 5.0)
    assert buffer(bounds=PullBounds(max_expires=60.0)).expires == 30.0
    # Less than a second is no life for a request.
    assert buffer(bounds=PullBounds(max_expires=0.1)).expires == 1.0


def test_given_lifetime_may_exceed_the_consumers_limits() -> None:
    assert buffer(expires=20, bounds=BOUNDS).expires == 20.0


def test_only_members_of_a_group_pull_to_keep_a_pin() -> None:
    assert buffer(bounds=BOUNDS).pull_every is None
    assert buffer(bounds=BOUNDS, priority=Priority(group="g")).pull_every == 20.0


@pytest.mark.parametrize(
    ("given", "reason"),
    [
        ({"max_messages": 0}, "max_messages"),
        ({"max_messages": -5}, "max_messages"),
        ({"max_bytes": 0}, "max_bytes"),
        ({"max_bytes": -1}, "max_bytes"),
        ({"expires": 0.9}, "expires must be at least 1"),
        ({"expires": INFINITE}, "expires must be finite"),
        ({"heartbeat": 0.4}, "0.5 to 30"),
        ({"heartbeat": 31, "expires": 100}, "0.5 to 30"),
        ({"heartbeat": 20}, "half of expires"),
        ({"threshold_messages": -1}, "threshold_messages"),
        ({"threshold_messages": 501}, "threshold_messages"),
        ({"threshold_bytes": 1}, "threshold_bytes"),
    ],
)
def test_invalid_buffer_is_refused(given: dict[str, Any], reason: str) -> None:
    with pytest.raises(BadArgument, match=reason):
        buffer(**given)


@given(st.floats(1, 3600))
def test_heartbeats_keep_to_the_servers_rule(expires: float) -> None:
    limits = buffer(expires=expires)
    body = json.loads(request_body(1, None, limits))
    assert body["idle_heartbeat"] <= body["expires"] / 2


def test_the_json_of_a_request() -> None:
    assert json.loads(request_body(7, None, buffer())) == {
        "batch": 7,
        "expires": 30_000_000_000,
        "idle_heartbeat": 5_000_000_000,
    }
    assert json.loads(request_body(7, 0, fetch_limits(7, None, 0.25, "full"))) == {
        "batch": 7,
        "max_bytes": 0,
        "expires": 250_000_000,
    }
    assert json.loads(request_body(1, 9, fetch_limits(1, 9, 5, "none"))) == {
        "batch": 1,
        "max_bytes": 9,
        "no_wait": True,
    }

"""Tokens, deadlines, batches, mailboxes and answers."""

from __future__ import annotations

import json
import math
import pickle
from collections.abc import Callable
from datetime import timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st

from js_core import deadline, errors
from js_core.acks import nak
from js_core.answers import read_answer, read_object
from js_core.batch import Batch, BatchEnd
from js_core.deadline import NEVER, Deadline, seconds
from js_core.errors import BadAnswer, BadArgument, JetStreamError, PullRefused, api_error
from js_core.lease import Terms
from js_core.mailbox import Mailbox
from js_core.publish import PublishRequest, publish_headers
from js_core.retry import TryLater
from js_core.schedules import Schedule
from js_core.tokens import Tokens, base62
from tests.core.wire import delivery

# ---- tokens


@given(st.integers(0, 2**128))
def test_tokens_are_written_in_62_digits(number: int) -> None:
    digits = "0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz"
    text = base62(number)
    assert sum(digits.index(d) * 62**n for n, d in enumerate(reversed(text))) == number


def test_tokens_never_repeat() -> None:
    one, two = Tokens(b"\1" * 16), Tokens(b"\2" * 16, "_IN")
    made = [make() for make in (one.next, one.inbox, one.name) for _ in range(100)]
    assert len(set(made)) == 300
    assert two.inbox().startswith("_IN.")
    assert one.inbox().startswith("_INBOX.")
    assert one.inbox().split(".")[1] != two.inbox().split(".")[1]
    assert one.name() != two.name()


# ---- deadlines


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> list[float]:
    now = [100.0]
    monkeypatch.setattr(deadline, "monotonic", lambda: now[0])
    return now


@pytest.mark.parametrize(
    "ask",
    [
        nak,
        TryLater,
        Schedule.every,
        lambda delay: Terms.of(delay, None),
        lambda delay: Terms.period(delay, "keep"),
        lambda delay: publish_headers(PublishRequest(subject="a", ttl=delay)),
    ],
)
def test_no_server_is_asked_for_what_its_clock_cannot_hold(ask: Callable[[int], object]) -> None:
    """It would be over at once there: a lock free for others, a message removed."""
    ask(3_000_000_000)
    with pytest.raises(BadArgument, match="at most 100 years"):
        ask(8_000_000_000)


def test_a_deadline_passes(clock: list[float]) -> None:
    limit = Deadline.after(timedelta(seconds=2))
    assert (limit.at, limit.remaining(), limit.expired()) == (102.0, 2.0, False)
    assert repr(limit) == "Deadline(2.000s)"
    clock[0] = 102.0
    assert (limit.remaining(), limit.expired()) == (0.0, True)


def test_never(clock: list[float]) -> None:
    assert Deadline.after(None) is NEVER
    assert NEVER.remaining() == math.inf
    assert not NEVER.expired()
    assert repr(NEVER) == "Deadline(never)"
    assert NEVER.earlier(5.0).at == 5.0
    soon = Deadline.after(1)
    assert soon.earlier(1000.0) is soon


@pytest.mark.parametrize("value", [-0.1, float("nan"), timedelta(seconds=-1)])
def test_durations_that_are_none(value: float | timedelta) -> None:
    with pytest.raises(BadArgument, match="patience must be"):
        seconds(value, "patience")


@pytest.mark.parametrize("value", ["5", None, "soon", b"1"])
def test_a_duration_is_a_number(value: object) -> None:
    with pytest.raises(BadArgument, match="patience must be"):
        seconds(value, "patience")  # type: ignore[arg-type]


# ---- batches


def test_a_batch_is_a_sequence() -> None:
    batch = Batch(["a", "b", "c"], BatchEnd.EXPIRED, "408 Request Timeout")
    assert (len(batch), batch[0], batch[-1], batch[1:]) == (3, "a", "c", ["b", "c"])
    assert list(batch) == ["a", "b", "c"]
    assert "b" in batch
    assert not Batch([], BatchEnd.NO_MESSAGES)
    assert repr(batch) == "<Batch of 3: expired>"
    with pytest.raises(IndexError):
        batch[3]


# ---- mailboxes


class Flag:
    def __init__(self) -> None:
        self.up = False

    def set(self) -> None:
        self.up = True

    def clear(self) -> None:
        self.up = False


def test_a_mailbox_is_emptied_at_once() -> None:
    box = Mailbox(b"1", b"s.*", b"", Flag(), 5.0)
    box.frames += [delivery(1), delivery(2)]
    box.signal.set()
    assert box.take_all() == [delivery(1), delivery(2)]
    assert not box.signal.up
    assert not box.frames
    assert box.take_all() == []
    assert box.heard_at == 5.0


# ---- answers and errors


@pytest.mark.parametrize("text", [b"", b"[]", b"null", b"+OK", b"\xff", b"{", b'"x"'])
def test_an_answer_that_is_not_jetstreams(text: bytes) -> None:
    with pytest.raises(BadAnswer, match=r"\$JS\.API\.X"):
        read_answer(text, "$JS.API.X")
    with pytest.raises(ValueError, match=r".+"):
        read_object(text)


def test_an_answer() -> None:
    assert read_answer(b'{"a":1}', "s") == {"a": 1}
    assert read_answer(b'{"a":1,"error":null}', "s") == {"a": 1, "error": None}


@pytest.mark.parametrize(
    ("code", "name"),
    [
        (10059, "StreamNotFound"),
        (10014, "ConsumerNotFound"),
        (10149, "ConsumerNotFound"),
        (10037, "MessageNotFound"),
        (10058, "StreamExists"),
        (10148, "ConsumerExists"),
        (10065, "SubjectOverlap"),
        (10052, "InvalidConfig"),
        (10071, "WrongLastSequence"),
        (10164, "WrongLastSequence"),
        (10070, "WrongLastMessageId"),
        (10060, "WrongStream"),
        (10077, "StoreRefused"),
        (10039, "JetStreamNotEnabled"),
        (10076, "JetStreamNotEnabled"),
        (10999, "JetStreamError"),
    ],
)
def test_errors_of_the_api(code: int, name: str) -> None:
    body = {"error": {"code": 400, "err_code": code, "description": "words of the server"}}
    with pytest.raises(JetStreamError) as caught:
        read_answer(json.dumps(body).encode(), "$JS.API.X")
    error = caught.value
    assert type(error) is getattr(errors, name)
    assert (error.code, error.err_code) == (400, code)
    assert str(error) == f"words of the server (err_code {code}) [$JS.API.X]"
    again = pickle.loads(pickle.dumps(error))
    assert (type(again), str(again), again.err_code) == (type(error), str(error), code)


def test_a_full_subject_is_told_from_a_full_stream() -> None:
    full = {"err_code": 10077, "description": "maximum messages per subject exceeded"}
    assert type(api_error(full)) is errors.MessageExists
    assert isinstance(api_error(full), errors.StoreRefused)


def test_an_error_without_members() -> None:
    error = api_error({"code": "x"})
    assert (error.code, error.err_code, str(error)) == (
        0,
        0,
        "JetStream gave no reason (err_code 0)",
    )


def test_a_refused_pull_pickles() -> None:
    error = PullRefused("max_batch", 3, "2", "409 Exceeded MaxRequestBatch of 2")
    again = pickle.loads(pickle.dumps(error))
    assert str(again) == str(error)
    assert (again.limit, again.asked, again.allowed) == ("max_batch", 3, "2")


def test_every_error_is_in_the_tree_of_the_modules_text() -> None:
    assert errors.__doc__
    for name in errors.__all__:
        if name[0].isupper():
            assert issubclass(getattr(errors, name), errors.TwinstreamError)
            assert name in errors.__doc__

"""The meaning of an error of an attempt, and when the attempts of a write end."""

from __future__ import annotations

import pytest

from twinstream.core.deadline import Deadline, monotonic
from twinstream.core.exactly_once.attempts import WriteAttempts
from twinstream.core.exactly_once.conditional_write import Refusal, is_mine, judge
from twinstream.core.read.stream_message import StreamMessage
from twinstream.errors import (
    BadArgument,
    ConnectionLost,
    NoResponders,
    OutcomeUnknown,
    RequestTimeout,
    TwinstreamError,
    api_error,
)
from twinstream.models import Timestamp
from twinstream.records.headers import Headers


def answer(err_code: int, description: str = "no") -> TwinstreamError:
    return api_error({"code": 400, "err_code": err_code, "description": description})


@pytest.mark.parametrize(
    ("error", "refusal"),
    [
        (answer(10071), Refusal.HELD),
        (answer(10164), Refusal.HELD),
        (answer(10077, "maximum messages per subject exceeded"), Refusal.HELD),
        (answer(10077, "maximum messages exceeded"), Refusal.FINAL),
        (answer(10158), Refusal.IN_PROCESS),
        (answer(10163), Refusal.PASSING),
        (answer(10008), Refusal.PASSING),
        (answer(0, "raft: not leader"), Refusal.PASSING),
        (NoResponders("x"), Refusal.PASSING),
        (RequestTimeout("x"), Refusal.LOST),
        (ConnectionLost("x"), Refusal.LOST),
        (answer(10060), Refusal.FINAL),
        (BadArgument("x"), Refusal.FINAL),
    ],
)
def test_what_an_error_means(error: TwinstreamError, refusal: Refusal) -> None:
    assert judge(error) is refusal


@pytest.mark.parametrize(("pairs", "mine"), [((("Nats-Msg-Id", "1"),), True), ((), False)])
def test_a_message_is_known_by_its_id(pairs: tuple[tuple[str, str], ...], mine: bool) -> None:
    message = StreamMessage(
        stream_name="S",
        subject="s",
        seq=1,
        time=Timestamp.fromisoformat("2026-01-01T00:00:00+00:00"),
        data=b"",
        headers=Headers(pairs),
    )
    assert is_mine(message, "1") is mine


def test_pauses_grow_and_the_deadline_ends_them() -> None:
    error = NoResponders("nobody")
    tries = WriteAttempts(Deadline.after(100))
    assert [tries.pause(error, "s") for _ in range(5)] == [0.05, 0.1, 0.2, 0.4, 0.4]
    assert 33 < tries.patience() < 34
    short = WriteAttempts(Deadline.after(0.1))
    assert short.patience() <= 0.1
    over = WriteAttempts(Deadline(monotonic()))
    with pytest.raises(NoResponders):
        over.pause(error, "s")
    over.lost()
    with pytest.raises(OutcomeUnknown, match="s: a response was lost, and then: nobody") as caught:
        over.pause(error, "s")
    assert caught.value.__cause__ is error

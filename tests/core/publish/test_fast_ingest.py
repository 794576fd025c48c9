"""Which outcome the responses to a fast batch give to each message."""

from __future__ import annotations

import json

import pytest

from twinstream.core.publish.fast_ingest import (
    FastBatch,
    Fate,
    Gaps,
    check_gaps,
    check_headers,
    check_stream,
    interval_for,
)
from twinstream.core.wire.headers import encode_headers
from twinstream.core.wire.protocol import Frame
from twinstream.errors import (
    BadArgument,
    InvalidResponse,
    JetStreamError,
    NoResponders,
    RequestTimeout,
    TwinstreamError,
)
from twinstream.models import StreamConfig

START, APPEND, COMMIT, PING = 0, 1, 3, 4
UNAVAILABLE = b"NATS/1.0 503\r\n\r\n"


def new(gaps: Gaps = "fail", sent: int = 5) -> FastBatch:
    batch = FastBatch(b"_INBOX.1", "b1", "S", 10, gaps)
    batch.sent = sent
    return batch


def answer(
    number: int, operation: int, body: object = None, *, gaps: Gaps = "fail", name: str = "b1"
) -> Frame:
    subject = f"_INBOX.1.{name}.10.{gaps}.{number}.{operation}.$FI".encode()
    if body is None:
        return subject, b"", len(UNAVAILABLE), UNAVAILABLE + b"\r\n"
    data = body if isinstance(body, bytes) else json.dumps(body).encode()
    return subject, b"", 0, data + b"\r\n"


def ack(seq: int, interval: int = 10) -> dict[str, object]:
    return {"type": "ack", "seq": seq, "msgs": interval}


def gap(first: int, end: int) -> dict[str, object]:
    return {"type": "gap", "last_seq": first, "seq": end}


def error(code: int, stream: str = "S") -> dict[str, object]:
    refusal = {"code": 400, "err_code": code, "description": "no"}
    return {"error": refusal, "stream": stream, "seq": 0}


def err(seq: int, code: int = 10071) -> dict[str, object]:
    return {"type": "err", "seq": seq, "error": {"code": 400, "err_code": code}}


def end(count: int, seq: int = 100, stream: str = "S", name: str = "b1") -> dict[str, object]:
    return {"stream": stream, "seq": seq, "batch": name, "count": count}


def fates(batch: FastBatch) -> str:
    """Return the first letter of the outcome of each message."""
    return "".join(batch.fate(number).name[0] for number in range(1, batch.sent + 1))


def test_reply_subjects_number_the_messages_and_nothing_else() -> None:
    batch = new(sent=0)
    assert batch.next_reply() == b"_INBOX.1.b1.10.fail.1.0.$FI"
    batch.sent = 1
    assert batch.next_reply() == b"_INBOX.1.b1.10.fail.2.1.$FI"
    assert batch.ping_reply() == b"_INBOX.1.b1.10.fail.1.4.$FI"
    assert batch.commit_reply() == b"_INBOX.1.b1.10.fail.2.3.$FI"
    assert new("ok", 0).next_reply() == b"_INBOX.1.b1.10.ok.1.0.$FI"


def test_room_follows_the_interval_that_the_server_chose() -> None:
    batch = new(sent=0)
    assert batch.has_room
    batch.sent = 1
    # What the server allows is not known before its first answer.
    assert not batch.has_room
    batch.take(answer(1, START, ack(0, 3)))
    batch.sent = 5
    assert batch.has_room
    batch.sent = 6
    assert not batch.has_room
    batch.take(answer(3, APPEND, ack(3, 1)))
    assert not batch.has_room
    # An older one that comes late takes nothing back.
    batch.take(answer(6, APPEND, ack(6, 2)))
    batch.take(answer(4, APPEND, ack(4, 2)))
    assert batch.passed == 6
    assert batch.has_room
    batch.take(answer(6, PING, ack(6, 0)))
    assert batch.interval == 1


@pytest.mark.parametrize(
    ("gaps", "answers", "told"),
    [
        ("fail", [], "UUUUU"),
        ("fail", [(1, START, ack(0))], "UUUUU"),
        ("fail", [(3, APPEND, ack(3))], "SSSUU"),
        ("fail", [(5, COMMIT, end(5))], "SSSSS"),
        # A gap ends it: what is behind was not stored, nor what was lost.
        ("fail", [(4, APPEND, gap(3, 4)), (4, APPEND, end(2))], "SSAAA"),
        ("fail", [(3, APPEND, ack(3)), (4, APPEND, end(2))], "SSSAA"),
        # A notice alone decides nothing.
        ("fail", [(4, APPEND, gap(3, 4))], "UUUUU"),
        ("fail", [(3, APPEND, err(3)), (3, APPEND, end(2))], "SSRAA"),
        ("fail", [(3, APPEND, err(3))], "UURUU"),
        # The server may count what it refused.
        ("fail", [(3, APPEND, error(10070)), (5, COMMIT, end(5))], "SSRSS"),
        ("fail", [(3, APPEND, err(3, 10163)), (3, APPEND, end(2))], "SSAAA"),
        ("fail", [(3, APPEND, None), (4, APPEND, end(2))], "SSAAA"),
        ("fail", [(4, APPEND, error(10208)), (5, APPEND, error(10208))], "UUUAA"),
        ("fail", [(1, START, error(10205))], "RUUUU"),
        ("fail", [(1, START, error(10211))], "AUUUU"),
        ("fail", [(3, APPEND, error(10205, "OTHER")), (4, APPEND, end(2))], "SSRAA"),
        ("ok", [(3, APPEND, ack(3))], "PPPUU"),
        ("ok", [(4, APPEND, gap(3, 4)), (5, COMMIT, end(5))], "PPLPP"),
        ("ok", [(3, APPEND, err(3)), (5, COMMIT, end(5))], "PPRPP"),
        # It went on without it, and must not come out of order.
        ("ok", [(3, APPEND, None), (5, COMMIT, end(5))], "PPRPP"),
        ("ok", [(4, APPEND, error(10208))], "UUUAU"),
        ("ok", [(5, COMMIT, end(3))], "PPPAA"),
        # Backwards: a number that came twice.
        ("ok", [(4, APPEND, gap(4, 3)), (4, APPEND, end(5))], "PPPPP"),
    ],
)
def test_what_became_of_each_message(
    gaps: Gaps, answers: list[tuple[int, int, object]], told: str
) -> None:
    batch = new(gaps)
    for number, operation, body in answers:
        batch.take(answer(number, operation, body, gaps=gaps))
    assert fates(batch) == told


def test_end_reports_the_last_sequence() -> None:
    batch = new()
    batch.take(answer(6, COMMIT, {**end(5), "domain": "hub"}))
    assert batch.is_over
    assert batch.ack is not None
    assert (batch.ack.seq, batch.ack.count, batch.ack.batch) == (100, 5, "b1")
    assert batch.ack.domain == "hub"
    # The first end stands.
    batch.fail(RequestTimeout("late"))
    assert batch.trouble is None


@pytest.mark.parametrize("body", [b"hello", b"[1]", b"{}", {"batch": "b1", "count": 5}])
def test_what_somebody_else_answers_changes_nothing(body: object) -> None:
    batch = new()
    batch.take(answer(5, APPEND, body))
    assert fates(batch) == "UUUUU"
    assert not batch.is_over
    assert batch.stray


def test_answers_to_another_batch_change_nothing() -> None:
    batch = new()
    batch.take(answer(5, COMMIT, end(5), name="b0"))
    assert not batch.is_over
    assert not batch.stray


@pytest.mark.parametrize("operation", [COMMIT, PING])
def test_batch_unknown_to_the_server_may_still_be_ended(operation: int) -> None:
    batch = new()
    assert not batch.is_broken
    batch.take(answer(5, operation, error(10208)))
    assert batch.is_broken
    assert not batch.is_over
    assert not batch.refused
    assert isinstance(batch.vanished, JetStreamError)
    batch.take(answer(3, APPEND, end(2)))
    assert batch.is_over
    assert fates(batch) == "SSAAA"


def test_no_responders_to_a_commit_is_not_a_refusal() -> None:
    batch = new()
    batch.take(answer(6, COMMIT))
    assert isinstance(batch.vanished, NoResponders)
    assert not batch.refused


def test_without_its_first_message_there_is_no_batch() -> None:
    batch = new(sent=1)
    batch.take(answer(1, START, error(10205)))
    assert batch.is_over
    assert isinstance(batch.trouble, JetStreamError)
    assert batch.trouble.err_code == 10205


@pytest.mark.parametrize(("gaps", "broken"), [("fail", True), ("ok", False)])
def test_a_refusal_breaks_a_batch_that_may_have_no_gaps(gaps: Gaps, broken: bool) -> None:
    batch = new(gaps)
    batch.take(answer(3, APPEND, err(3), gaps=gaps))
    assert batch.is_broken is broken


def test_a_message_stored_outside_of_the_batch() -> None:
    batch = new()
    batch.take(answer(1, START, {"stream": "S", "seq": 7}))
    assert isinstance(batch.trouble, InvalidResponse)
    assert "as 7" in str(batch.refused[1])
    assert batch.fate(1) is Fate.REFUSED


def test_a_subject_of_another_stream_is_named() -> None:
    batch = new()
    batch.take(answer(2, APPEND, error(10208, "OTHER")))
    assert isinstance(batch.refused[2], BadArgument)
    assert "OTHER" in str(batch.refused[2])


def test_other_errors_are_of_the_message() -> None:
    batch = new()
    batch.refused[2] = TwinstreamError("no")
    assert batch.fate(2) is Fate.REFUSED


@pytest.mark.parametrize(
    ("members", "told"),
    [({}, "allow_batched"), ({"allow_batched": True, "no_ack": True}, "no_ack")],
)
def test_streams_that_cannot_be_used(members: dict[str, bool], told: str) -> None:
    with pytest.raises(BadArgument, match=told):
        check_stream(StreamConfig(name="S", **members))  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("name", "told"),
    [("Nats-Expected-Last-Msg-Id", "expected_last_msg_id"), ("Nats-Batch-Id", "atomic")],
)
def test_headers_that_cannot_be_used(name: str, told: str) -> None:
    check_headers(encode_headers({"Nats-Msg-Id": name}))
    with pytest.raises(BadArgument, match=told):
        check_headers(encode_headers({"Other": "x", name: "y"}))


def test_streams_gaps_and_windows_of_fast_ingest_are_checked() -> None:
    check_stream(StreamConfig(name="S", allow_batched=True))
    assert check_gaps("ok") == "ok"
    with pytest.raises(BadArgument, match="'maybe'"):
        check_gaps("maybe")  # type: ignore[arg-type]
    assert [interval_for(window) for window in (1, 2, 7, 1000, 9999)] == [1, 1, 3, 500, 500]

"""Pins, priority groups, differences of configurations, and pages of stored messages."""

from __future__ import annotations

import json
from typing import Any

import pytest
from attrs import evolve

from js_core.difference import differences
from js_core.errors import BadAnswer, BadArgument, ConsumerExists
from js_core.pin import Pins, pin_of, pin_size
from js_core.protocol import Frame
from js_core.pull_request import Priority, fetch_limits, request_body
from js_core.range_read import RangeRead
from js_core.stored_page import DirectAnswer, PageEnd, PullAnswer, StoredPage
from tests.core.wire import block, delivery, status_frame

# ---- pins and priority groups


def framed(head: bytes, data: bytes = b"x", reply: bytes = b"r") -> Frame:
    return (b"s", reply, len(head), head + data + b"\r\n")


def test_the_pin_of_a_message() -> None:
    assert pin_of(framed(block("", Nats_Pin_Id="abc"))) == "abc"
    assert pin_of(framed(block("", A="Nats-Pin-Id: no"))) is None
    assert pin_of(framed(b"", b"\r\nNats-Pin-Id: no")) is None
    assert pin_of(delivery(1)) is None


def test_the_bytes_that_the_pin_added() -> None:
    pinned, other = block("", Nats_Pin_Id="x" * 22), block("", A="b")
    both = block("", A="b", Nats_Pin_Id="x" * 22)
    assert pin_size(framed(pinned)) == len(pinned)
    assert pin_size(framed(both)) == len(both) - len(other)
    assert pin_size(framed(other)) == pin_size(delivery(1)) == 0


def test_pins_by_group() -> None:
    pins = Pins()
    assert pins.get("g") is None
    assert pins.note("g", "1")
    assert not pins.note("g", "1")
    assert pins.note("g", "2")
    assert (pins.get("g"), pins.get("h")) == ("2", None)
    assert pins.drop("g")
    assert not pins.drop("g")


@pytest.mark.parametrize("value", [None, 0, 1, 9])
@pytest.mark.parametrize(
    ("name", "member"),
    [("min_pending", "min_pending"), ("min_ack_pending", "min_ack_pending"), ("rank", "priority")],
)
def test_zero_is_a_value_of_a_priority(name: str, member: str, value: int | None) -> None:
    limits = evolve(fetch_limits(1, None, 5, "full"), priority=Priority(group="g", **{name: value}))
    body = json.loads(request_body(1, None, limits, "pin"))
    assert (body["group"], body["id"]) == ("g", "pin")
    assert body.get(member) == value
    assert (member in body) is (value is not None)


@pytest.mark.parametrize(
    "given",
    [
        {"group": ""},
        {"group": "a b"},
        {"group": "x" * 17},
        {"group": "g", "min_pending": -1},
        {"group": "g", "min_ack_pending": -1},
        {"group": "g", "rank": 10},
        {"group": "g", "rank": -1},
    ],
)
def test_priorities_that_make_no_sense(given: dict[str, Any]) -> None:
    with pytest.raises(BadArgument):
        Priority(**given)


# ---- differences


def test_what_differs_is_named() -> None:
    found = differences({"max_deliver": 3, "ack_wait": None}, {"max_deliver": 5, "ack_wait": 30})
    assert [str(each) for each in found] == ["max_deliver: wanted 3, is 5"]
    assert differences({"name": "c"}, {"name": "c", "ack_wait": 30, "max_deliver": -1}) == ()
    assert differences({"headers_only": False, "filter_subject": ""}, {}) == ()
    [beyond] = differences({"name": "c"}, {"name": "c", "filter_subject": "a"})
    assert (beyond.field, beyond.wanted, beyond.actual) == ("filter_subject", None, "a")


def test_metadata_of_the_server_is_no_difference() -> None:
    actual = {"metadata": {"a": "1", "_nats.level": "2"}}
    assert differences({"metadata": {"a": "1"}}, actual) == ()
    assert len(differences({"metadata": {"a": "2"}}, actual)) == 1
    assert len(differences({"metadata": {"a": "2"}}, {})) == 1


def test_an_error_with_differences() -> None:
    error = ConsumerExists("consumer already exists", code=400, err_code=10148)
    found = differences({"max_deliver": 3}, {"max_deliver": 5})
    told = error.with_differences(found)
    assert "max_deliver: wanted 3, is 5" in str(told)
    assert (told.err_code, told.differences) == (10148, found)
    assert "no field" in str(error.with_differences(()))


# ---- pages of stored messages


def direct(seq: int, *, pending: int = 0, stored: str = "", batch: bool = True) -> Frame:
    lines = [stored] if stored else []
    lines += ["Nats-Stream: S", f"Nats-Subject: a.{seq}", f"Nats-Sequence: {seq}"]
    lines += ["Nats-Time-Stamp: 2024-01-01T00:00:00Z"]
    if batch:
        lines += [f"Nats-Num-Pending: {pending}", "Nats-Last-Sequence: 0"]
    head = "\r\n".join(["NATS/1.0", *lines, "", ""]).encode()
    return (b"_INBOX.1", b"", len(head), head + b"data\r\n")


def test_a_page_of_direct_answers() -> None:
    page = StoredPage()
    answer = DirectAnswer(b"_INBOX.1", RangeRead(1, 10), page)
    forged = "Nats-Stream: X\r\nNats-Subject: y\r\nNats-Sequence: 99"
    frames = [direct(1, pending=2), direct(2, stored="A: b"), direct(3, stored=forged)]
    other = (b"_INBOX.2", *direct(9)[1:])
    assert answer.take([*frames, other]) is None
    assert (page.seqs, page.subjects) == ([1, 2, 3], [b"a.1", b"a.2", b"a.3"])
    assert page.payloads == [b"data"] * 3
    assert page.times == [b"2024-01-01T00:00:00Z"] * 3
    assert page.headers[0] == b""
    assert page.headers[1] == b"NATS/1.0\r\nA: b\r\n"
    assert len(page) == 3


def test_a_page_takes_what_matches() -> None:
    page = StoredPage()
    answer = DirectAnswer(b"_INBOX.1", RangeRead(1, 10), page, lambda subject: subject == b"a.2")
    answer.take([direct(1), direct(2)])
    assert page.seqs == [2]


@pytest.mark.parametrize(
    ("code", "text", "headers", "wanted"),
    [
        (204, "EOB", {"Nats_Num_Pending": 5}, PageEnd(more=True)),
        (204, "EOB", {"Nats_Num_Pending": 0}, PageEnd()),
        (204, "EOB", {}, PageEnd()),
        (404, "Message Not Found", {}, PageEnd()),
        (408, "Empty Request", {}, PageEnd(failure="408 Empty Request")),
        (503, "", {}, PageEnd(failure="503", missing=True)),
    ],
)
def test_the_end_of_a_direct_page(
    code: int, text: str, headers: dict[str, Any], wanted: PageEnd
) -> None:
    frame = status_frame(code, text, b"1", **headers)
    answer = DirectAnswer(frame[0], RangeRead(1, 10), StoredPage())
    assert answer.take([frame]) == wanted


@pytest.mark.parametrize("frame", [direct(1, batch=False), delivery(1)])
def test_what_is_no_answer_of_a_batch(frame: Frame) -> None:
    frame = (b"_INBOX.1", *frame[1:])
    answer = DirectAnswer(b"_INBOX.1", RangeRead(1, 10), StoredPage())
    with pytest.raises(BadAnswer, match="direct get batch"):
        answer.take([frame])


def pull_answer(batch: int = 3) -> tuple[PullAnswer, StoredPage]:
    page = StoredPage()
    return PullAnswer(b"T", RangeRead(1, 10), page, batch), page


def test_a_page_of_deliveries() -> None:
    answer, page = pull_answer(3)
    head = block("", A="b")
    headed = (b"s", delivery(2)[1], len(head), head + b"two\r\n")
    beat = status_frame(100, "Idle Heartbeat")
    late = status_frame(404, "No Messages", b"OLD")
    assert answer.take([delivery(1, b"one"), beat, late, headed]) is None
    assert answer.take([delivery(3)]) == PageEnd(more=False)
    assert (page.seqs, page.payloads) == ([1, 2, 3], [b"one", b"two", b"x"])
    assert page.headers == [b"", b"NATS/1.0\r\nA: b\r\n", b""]
    assert page.times == [1700000000000000000] * 3


@pytest.mark.parametrize(
    ("code", "text", "wanted"),
    [
        (404, "No Messages", PageEnd()),
        (408, "Request Timeout", PageEnd()),
        (409, "Batch Completed", PageEnd(more=True)),
        (409, "Message Size Exceeds MaxBytes", PageEnd(more=True)),
        (409, "Leadership Change", PageEnd(failure="409 Leadership Change")),
        (409, "Consumer Deleted", PageEnd(failure="409 Consumer Deleted", missing=True)),
        (503, "", PageEnd(failure="503", missing=True)),
    ],
)
def test_the_end_of_a_page_of_deliveries(code: int, text: str, wanted: PageEnd) -> None:
    answer, _ = pull_answer()
    assert answer.take([status_frame(code, text)]) == wanted


def test_what_is_no_delivery() -> None:
    answer, _ = pull_answer()
    with pytest.raises(BadAnswer, match="not a delivery"):
        answer.take([(b"s", b"_INBOX.x", 0, b"x\r\n")])


def test_a_delivery_that_was_read_before_is_passed_over() -> None:
    answer, page = pull_answer(3)
    assert answer.take([delivery(1), delivery(1), delivery(2)]) == PageEnd()
    assert page.seqs == [1, 2]


def test_positions_of_a_range() -> None:
    read = RangeRead(3, 10)
    assert (read.next_seq, read.first_seq) == (3, 0)
    assert read.accept(5)
    assert (read.next_seq, read.first_seq) == (6, 5)
    read.accept(12)
    read.page_failed()
    assert read.next_seq == 10
    for bad in ({"page_messages": 0}, {"page_bytes": 0}):
        with pytest.raises(ValueError, match="room for one message"):
            RangeRead(1, 2, **bad)

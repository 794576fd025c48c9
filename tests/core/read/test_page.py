"""Pages of stored messages, and the position of a range read after them."""

from __future__ import annotations

from typing import Any

import pytest

from tests.core.frames import block, delivery, status_frame
from twinstream.core.read.page import MIRROR_ANSWERED, DirectAnswer, PageEnd, PullAnswer, StoredPage
from twinstream.core.read.range_read import RangeRead
from twinstream.core.wire.protocol import Frame
from twinstream.errors import InvalidResponse


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
    answer = DirectAnswer(b"_INBOX.1", b"S", RangeRead(1, 10), page)
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


def test_page_accepts_matching_messages() -> None:
    page = StoredPage()
    answer = DirectAnswer(b"_INBOX.1", b"S", RangeRead(1, 10), page, lambda name: name == b"a.2")
    answer.take([direct(1), direct(2)])
    assert page.seqs == [2]


def test_responses_of_a_mirror_are_not_accepted() -> None:
    page = StoredPage()
    answer = DirectAnswer(b"_INBOX.1", b"ORIGIN", RangeRead(1, 10), page)
    forged = "Nats-Stream: ORIGIN\r\nNats-Subject: y\r\nNats-Sequence: 99"
    end = answer.take([direct(1, stored=forged), direct(2)])
    assert end == PageEnd(failure=MIRROR_ANSWERED, mirror=True)
    assert not page


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
    answer = DirectAnswer(frame[0], b"S", RangeRead(1, 10), StoredPage())
    assert answer.take([frame]) == wanted


@pytest.mark.parametrize("frame", [direct(1, batch=False), delivery(1)])
def test_what_is_no_answer_of_a_batch_is_refused(frame: Frame) -> None:
    frame = (b"_INBOX.1", *frame[1:])
    answer = DirectAnswer(b"_INBOX.1", b"S", RangeRead(1, 10), StoredPage())
    with pytest.raises(InvalidResponse, match="direct get batch"):
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


def test_what_is_no_delivery_is_refused() -> None:
    answer, _ = pull_answer()
    with pytest.raises(InvalidResponse, match="not a delivery"):
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
        with pytest.raises(ValueError, match="at least 1"):
            RangeRead(1, 2, **bad)

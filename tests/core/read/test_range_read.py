"""Reading without consumers: requests, responses, pages, snapshots."""

from __future__ import annotations

import sys
from base64 import b64encode
from datetime import UTC, datetime
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.core.frames import status_frame
from twinstream.core.read import arrow
from twinstream.core.read.direct_get import (
    from_direct,
    from_leader,
    from_plain,
    last_request,
    next_request,
    payload_of,
    plain_start,
    seq_request,
)
from twinstream.core.read.multi_last import LARGEST, MultiAnswer, MultiEnd, chunks, multi_request
from twinstream.core.read.page import DirectAnswer, StoredPage
from twinstream.core.read.range_read import OPEN_END, RangeRead
from twinstream.core.read.read_report import ReadEnd, ReadReport
from twinstream.core.read.read_request import choose, read_request, snapshot_request
from twinstream.core.read.snapshot import Latest
from twinstream.core.wire.protocol import Frame
from twinstream.core.wire.selection import NOTHING, subject_filters
from twinstream.errors import (
    BadArgument,
    InvalidResponse,
    JetStreamError,
    MessageNotFound,
    Unsupported,
)
from twinstream.models import StoredMessage, StreamConfig, Timestamp

TIME = "2024-01-01T00:00:00.000000007Z"


def answer(seq: int, subject: str = "a", stored: str = "", pending: int | None = None) -> Frame:
    lines = [stored] if stored else []
    lines += ["Nats-Stream: S", f"Nats-Subject: {subject}", f"Nats-Sequence: {seq}"]
    lines += [f"Nats-Time-Stamp: {TIME}"]
    if pending is not None:
        lines += [f"Nats-Num-Pending: {pending}", "Nats-Last-Sequence: 0"]
    head = "\r\n".join(["NATS/1.0", *lines, "", ""]).encode()
    return (b"_INBOX.1", b"", len(head), head + b"data\r\n")


# ---- single messages


def test_requests_for_one_message() -> None:
    moment = datetime(2024, 1, 1, tzinfo=UTC)
    assert seq_request(7) == {"seq": 7}
    assert last_request("a.*") == {"last_by_subj": "a.*"}
    assert next_request(">") == {"seq": 1, "next_by_subj": ">"}
    assert next_request("a", 5) == {"seq": 5, "next_by_subj": "a"}
    timed = {"start_time": "2024-01-01T00:00:00Z", "next_by_subj": "a"}
    assert next_request("a", start_time=moment) == timed
    late = next_request("a", start_time=datetime.max.replace(tzinfo=UTC))
    assert late["start_time"] == "2262-04-11T23:47:16.854775807Z"
    assert payload_of({"seq": 1}) == b'{"seq":1}'


@pytest.mark.parametrize(
    "wrong",
    [
        lambda: seq_request(0),
        lambda: seq_request("1"),  # type: ignore[arg-type]
        lambda: last_request(""),
        lambda: next_request("a b"),
        lambda: next_request("a", 1, datetime(2024, 1, 1, tzinfo=UTC)),
        lambda: next_request("a", start_time=datetime(2024, 1, 1)),
        lambda: next_request("a", start_time=5),  # type: ignore[arg-type]
    ],
)
def test_wrong_requests(wrong: Any) -> None:
    with pytest.raises(BadArgument):
        wrong()


def test_the_two_forms_of_a_message_are_equal() -> None:
    block = b"NATS/1.0\r\nA: b\r\n\r\n"
    stored = StoredMessage(subject="a", seq=3, time=Timestamp.parse(TIME), data=b"data", hdrs=block)
    direct = from_direct(answer(3, stored="A: b"), "x")
    assert direct == from_leader(stored, "S")
    assert (direct.seq, direct.time.ns % 10, dict(direct.headers)) == (3, 7, {"A": "b"})
    assert not from_direct(answer(3, stored="A: b"), "x", headers=False).headers
    assert not from_leader(stored, "S", headers=False).headers
    bare = StoredMessage(subject="a", seq=3, time=Timestamp.parse(TIME))
    assert (from_leader(bare, "S").data, dict(from_leader(bare, "S").headers)) == (b"", {})


@given(
    st.sampled_from(["a", "ab", ""]),
    st.sampled_from(["", "A: b", "Nats-Stream: S", "Nats-Sequence: 9", f"Nats-Time-Stamp: {TIME}"]),
    st.sampled_from(
        [
            TIME,
            "2024-02-30T00:00:00Z",
            "2024-01-01T00:00:00Z",
            "1969-12-31T23:59:59.9Z",
            "2024-01-01T00:00:00+00:00",
            "2024-01-01T24:00:00.5Z",
            "0001-01-01T00:00:00Z",
            "x",
        ]
    ),
    st.integers(0, 2**64),
)
def test_a_plain_answer_is_read_as_any_other(
    subject: str, stored: str, time: str, seq: int
) -> None:
    _, _, size, body = answer(seq, subject, stored)
    frame = (b"_INBOX.1", b"", size, body.replace(TIME.encode(), time.encode()))
    frame = (*frame[:2], len(frame[3]) - 6, frame[3])
    start = plain_start("S", "a")
    found = from_plain(frame, start)
    if found is None:
        if not stored and subject == "a":
            # Only what is no time of a server.
            assert time != TIME
        return
    message = from_direct(frame, "x")
    assert (message.subject, message.stream_name, dict(message.headers)) == ("a", "S", {})
    assert found == (message.data, message.seq, message.time.ns)


@pytest.mark.parametrize(
    ("code", "text", "error"),
    [
        (404, "Message Not Found", MessageNotFound),
        (408, "Bad Request", JetStreamError),
        (500, "", JetStreamError),
    ],
)
def test_status_in_place_of_a_message(code: int, text: str, error: type[JetStreamError]) -> None:
    with pytest.raises(error) as caught:
        from_direct(status_frame(code, text), "x")
    assert caught.value.code == code


def test_what_is_no_direct_answer() -> None:
    head = b"NATS/1.0\r\nA: b\r\n\r\n"
    with pytest.raises(InvalidResponse, match="direct get"):
        from_direct((b"s", b"", len(head), head + b"x\r\n"), "x")


# ---- what a read wants, and how it goes


def wanted(**changes: Any) -> Any:
    given: dict[str, Any] = {
        **dict.fromkeys(("start", "end", "start_time", "end_time", "subjects", "via")),
        "page_messages": 1,
        "page_bytes": 1,
        "idle_timeout": 1,
    }
    return read_request(**{**given, **changes})


def test_filters_are_listed_once_or_not_at_all_if_one_matches_everything() -> None:
    assert subject_filters(None) == subject_filters(">") == subject_filters(["a", ">"]) == ()
    assert subject_filters("a") == ("a",)
    assert subject_filters(["b", "a", "b"]) == ("b", "a")
    assert subject_filters([]) == subject_filters(iter(())) == (NOTHING,)


MOMENT = datetime(2024, 1, 1, tzinfo=UTC)


@pytest.mark.parametrize(
    "changes",
    [
        {"start": 1, "start_time": MOMENT},
        {"end": 1, "end_time": MOMENT},
        {"start": 0},
        {"end": "1"},
        {"start_time": datetime(2024, 1, 1)},
        {"end_time": 1},
        {"via": "magic"},
        {"subjects": 1},
        {"subjects": ["a..b"]},
        {"page_messages": 0},
        {"page_bytes": 0},
        {"idle_timeout": -1},
    ],
)
def test_a_read_that_cannot_be(changes: dict[str, Any]) -> None:
    with pytest.raises(BadArgument):
        wanted(**changes)


def test_wishes_for_a_read_and_a_snapshot() -> None:
    read = wanted(start=3, end_time=MOMENT, subjects="a", via="leader")
    assert (read.start, read.end_time, read.subjects, read.via) == (3, MOMENT, ("a",), "leader")
    taken = snapshot_request(["a", "b"], None, MOMENT, 5)
    assert (taken.subjects, taken.at_time, taken.timeout) == (("a", "b"), MOMENT, 5)
    with pytest.raises(BadArgument, match="not both"):
        snapshot_request(None, 1, MOMENT, 5)


NEW, OLD = (2, 11, 0), (2, 10, 9)
DIRECT = {"allow_direct": True}


@pytest.mark.parametrize(
    ("config", "filters", "version", "way"),
    [
        (DIRECT, 0, NEW, "direct"),
        (DIRECT, 1, NEW, "direct"),
        (DIRECT, 2, NEW, "consumer"),
        (DIRECT, 0, OLD, "consumer"),
        ({}, 0, NEW, "consumer"),
        ({"retention": "limits"}, 0, NEW, "consumer"),
        ({"retention": "workqueue"}, 0, NEW, "leader"),
        ({"retention": "interest"}, 2, NEW, "leader"),
        ({**DIRECT, "retention": "workqueue"}, 2, NEW, "direct"),
        ({**DIRECT, "retention": "workqueue"}, 1, OLD, "leader"),
    ],
)
def test_the_way_that_is_chosen(
    config: dict[str, Any], filters: int, version: tuple[int, ...], way: str
) -> None:
    assert choose(None, filters, StreamConfig(name="S", **config), version) == way


def test_wishes_for_a_way() -> None:
    queue = StreamConfig(name="S", retention="workqueue")
    assert choose("leader", 0, queue, OLD) == "leader"
    assert choose("consumer", 0, StreamConfig(name="S", retention="interest"), OLD) == "consumer"
    assert choose("direct", 5, StreamConfig(name="S", allow_direct=True), NEW) == "direct"
    with pytest.raises(BadArgument, match="allow_direct"):
        choose("direct", 0, queue, NEW)
    with pytest.raises(Unsupported, match=r"2\.11"):
        choose("direct", 0, queue, OLD)
    with pytest.raises(BadArgument, match="work queue"):
        choose("consumer", 0, queue, NEW)


# ---- the end of a read


def test_why_a_range_is_complete() -> None:
    assert RangeRead(7, 7).reason is ReadEnd.EMPTY
    read = RangeRead(1, 3)
    assert (read.reason, read.is_open) == (ReadEnd.CLOSED, False)
    read.accept(2)
    read.page_ended(more=False)
    assert (read.reason, read.last_seq) == (ReadEnd.SEEN, 2)
    read = RangeRead(1, OPEN_END)
    read.page_ended(more=False)
    read.leader_has(None)
    assert (read.reason, read.is_open, read.last_seq) == (ReadEnd.LEADER, True, 0)
    read = RangeRead(1, 3)
    read.accept(5)
    read.page_failed()
    assert read.reason is ReadEnd.SEEN


@pytest.mark.parametrize(
    ("reason", "overtaken", "complete"),
    [
        (ReadEnd.SEEN, None, True),
        (ReadEnd.LEADER, 5, False),
        (ReadEnd.CLOSED, None, False),
        (ReadEnd.EMPTY, None, True),
    ],
)
def test_a_read_is_complete_unless_it_was_overtaken_or_closed(
    reason: ReadEnd, overtaken: int | None, complete: bool
) -> None:
    report = ReadReport(
        stream_name="S",
        start=1,
        end=9,
        messages=3,
        position=9,
        reason=reason,
        overtaken_at=overtaken,
    )
    assert report.is_complete is complete


# ---- pages


def page(*seqs: int, **subjects: str) -> StoredPage:
    made = StoredPage()
    for seq in seqs:
        stored = {"subject": subjects.get(f"s{seq}", "a"), "seq": seq, "time": TIME}
        made.add_stored({**stored, "data": b64encode(b"%d" % seq).decode()})
    return made


def test_messages_of_a_page() -> None:
    made = page(3)
    block = b64encode(b"NATS/1.0\r\nA: b\r\n\r\n").decode()
    made.add_stored({"subject": "ü", "seq": 5, "time": TIME, "hdrs": block})
    made.times[0] = 7
    one, two = made.message(0, "S"), made.message(1, "S")
    assert (one.stream_name, one.subject, one.seq, one.time.ns, one.data) == ("S", "a", 3, 7, b"3")
    assert (two.subject, dict(two.headers), two.data) == ("ü", {"A": "b"}, b"")
    assert (two.time, dict(one.headers)) == (Timestamp.parse(TIME), {})
    assert made.has_gaps
    assert not page(3, 4, 5).has_gaps
    assert not page().has_gaps


def test_a_page_as_arrow() -> None:
    pa = pytest.importorskip("pyarrow")

    def times(table: Any) -> list[int]:
        found: list[int] = table.column("time").combine_chunks().cast(pa.int64()).to_pylist()
        return found

    made = page(1, 2)
    made.headers[0] = "NATS/1.0\r\nA: b\r\nA: c\r\nÜ: x\r\n".encode()
    made.headers[1] = b"NATS/1.0\r\nA: \xff\r\n"
    made.subjects[1] = b"\xff"
    table = arrow.table([arrow.record_batch(made)])
    assert times(table) == [Timestamp.parse(TIME).ns] * 2
    made.times[:] = [7, 8]
    assert times(arrow.table([arrow.record_batch(made)])) == [7, 8]
    assert times(arrow.table([arrow.record_batch(page())])) == []
    rows = table.select(["subject", "seq", "headers", "data"]).to_pylist()
    assert rows == [
        {"subject": "a", "seq": 1, "headers": [("A", ["b", "c"]), ("Ü", ["x"])], "data": b"1"},
        {"subject": "\ufffd", "seq": 2, "headers": [("A", ["\ufffd"])], "data": b"2"},
    ]
    assert arrow.header_pairs(b"") is None


def test_error_without_pyarrow_names_the_package(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "pyarrow", None)
    with pytest.raises(Unsupported, match="pip install pyarrow"):
        arrow.arrow_schema()


# ---- the last messages of many subjects


def test_filters_are_split_into_requests() -> None:
    assert chunks(["a"]) == [("a",)]
    many = [f"s.{number}" for number in range(LARGEST + 1)]
    assert [len(part) for part in chunks(many)] == [LARGEST, 1]
    long = ["x" * 100_000, "y" * 100_000, "z" * 100_000]
    assert [len(part) for part in chunks(long)] == [2, 1]
    request = multi_request(["a"], seq=2, up_to_seq=3)
    assert b'"multi_last":["a"]' in request
    assert b'"seq":2,"up_to_seq":3' in request
    assert b'seq"' not in multi_request(["a"])


def test_an_answer_for_many_subjects() -> None:
    made = StoredPage()
    found = MultiAnswer(b"_INBOX.1", b"S", made)
    other = (b"_INBOX.2", *answer(9)[1:])
    frames = [answer(2, "a", pending=1), other, answer(5, "b", stored="A: b", pending=0)]
    assert found.take(frames) is None
    assert (made.seqs, made.subjects, made.payloads) == ([2, 5], [b"a", b"b"], [b"data"] * 2)
    assert made.headers == [b"", b"NATS/1.0\r\nA: b\r\n"]
    end = status_frame(404, "Message Not Found", b"1")
    assert found.take([(b"_INBOX.1", *end[1:])]) == MultiEnd(failure="404 Message Not Found")
    with pytest.raises(InvalidResponse, match="many subjects"):
        found.take([answer(3)])


def test_headers_that_begin_like_a_status_are_a_messages() -> None:
    """Servers before 2.12 store headers as their publisher wrote them."""
    subject, _, size, body = answer(2, stored="A: b", pending=0)
    line = b" 404 Message Not Found"
    frame = (subject, b"", size + len(line), body[:8] + line + body[8:])
    message = from_direct(frame, "x")
    assert (message.seq, dict(message.headers), message.data) == (2, {"A": "b"}, b"data")
    page, many = StoredPage(), StoredPage()
    assert DirectAnswer(subject, b"S", RangeRead(1, 10), page).take([frame]) is None
    assert MultiAnswer(subject, b"S", many).take([frame]) is None
    for each in (page, many):
        assert (each.seqs, dict(each.message(0, "S").headers)) == ([2], {"A": "b"})


@pytest.mark.parametrize(
    ("code", "text", "headers", "end"),
    [
        (
            204,
            "EOB",
            {"Nats_Num_Pending": 3, "Nats_UpTo_Sequence": 9},
            MultiEnd(up_to=9, more=True),
        ),
        (204, "EOB", {"Nats_Num_Pending": 0, "Nats_UpTo_Sequence": 9}, MultiEnd(up_to=9)),
        (404, "No Results", {}, MultiEnd()),
        (413, "Too Many Results", {}, MultiEnd(too_many=True)),
        (408, "Bad Request", {}, MultiEnd(failure="408 Bad Request")),
        (503, "", {}, MultiEnd(failure="503", missing=True)),
    ],
)
def test_the_end_of_an_answer_for_many(
    code: int, text: str, headers: dict[str, Any], end: MultiEnd
) -> None:
    frame = status_frame(code, text, b"1", **headers)
    assert MultiAnswer(frame[0], b"S", StoredPage()).take([frame]) == end


def test_the_latest_of_each_subject() -> None:
    latest = Latest()
    latest.add(page(4, 6, s4="a", s6="b"))
    latest.add(page())
    latest.add(page(2, 5, s2="b", s5="a"))
    snapshot = latest.snapshot("S", 7)
    assert latest.last_seq == 6
    assert [(subject, message.seq) for subject, message in snapshot.items()] == [("a", 5), ("b", 6)]
    assert repr(snapshot) == "<Snapshot of S at 7: 2 subjects>"
    assert (len(snapshot), snapshot["a"].data) == (2, b"5")

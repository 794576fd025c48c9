"""Pages that are parsed in bulk have the same messages as pages parsed by frame, for any split."""

from __future__ import annotations

import ast
import inspect
from collections import deque
from collections.abc import Callable
from itertools import pairwise

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.hooked import hooked
from tests.property_examples import examples
from tests.tuned import Tuned
from twinstream.core.read import arrow_columns
from twinstream.core.read.arrow_page import ArrowPage
from twinstream.core.read.bulk_page import BulkAnswer, DirectBulk, PullBulk
from twinstream.core.read.page import DirectAnswer, PageEnd, PullAnswer, StoredPage
from twinstream.core.read.range_read import RangeRead
from twinstream.core.wire.protocol import Frame, Parser

SID, INBOX, NAME = b"7", b"_INBOX.Q2xh.4.9", "Zm9vYmFy"
STORED = b"Nats-Msg-Id: 1\r\nA: b\r\n"
COPIED = (
    b"Nats-Stream: OLD\r\nNats-Subject: old\r\nNats-Sequence: 3\r\n"
    b"Nats-Time-Stamp: 2020-01-01T00:00:00Z\r\nNats-Num-Pending: 4\r\n"
)

Row = tuple[bytes, bytes, bytes]
"""Subject, stored headers, payload."""


def hmsg(subject: bytes, reply: bytes, headers: bytes, payload: bytes, sid: bytes = SID) -> bytes:
    head = b"HMSG %b %b%b%d %d" % (
        subject,
        sid + b" ",
        reply + b" " if reply else b"",
        len(headers),
        len(headers) + len(payload),
    )
    return head + b"\r\n" + headers + payload + b"\r\n"


def direct(rows: list[Row], start: int = 1) -> bytes:
    """Return the response to a batched direct get, with its end."""
    frames: list[bytes] = []
    for seq, (subject, stored, payload) in enumerate(rows, start):
        headers = (
            b"NATS/1.0\r\n%bNats-Stream: S\r\nNats-Subject: %b\r\nNats-Sequence: %d\r\n"
            b"Nats-Time-Stamp: 2026-01-31T12:00:00.%03dZ\r\nNats-Num-Pending: %d\r\n"
            b"Nats-Last-Sequence: %d\r\n\r\n"
        ) % (stored, subject, seq, seq, len(rows) - seq + start, seq - 1)
        frames.append(hmsg(INBOX, b"", headers, payload))
    end = b"NATS/1.0 204 EOB\r\nNats-Num-Pending: 0\r\n\r\n"
    return b"".join([*frames, hmsg(INBOX, b"", end, b"")])


def pull(rows: list[Row], start: int = 1, left: int = 0) -> bytes:
    """Return the deliveries for a pull request."""
    frames: list[bytes] = []
    for seq, (subject, stored, payload) in enumerate(rows, start):
        place = (seq, seq + 4, 1795320858353227968 + seq, left + len(rows) + start - 1 - seq)
        reply = b"$JS.ACK.S.%b.1.%d.%d.%d.%d" % (NAME.encode(), *place)
        if stored:
            frames.append(hmsg(subject, reply, b"NATS/1.0\r\n%b\r\n" % stored, payload))
        else:
            head = b"MSG %b %b %b %d\r\n" % (subject, SID, reply, len(payload))
            frames.append(head + payload + b"\r\n")
    return b"".join(frames)


class Session:
    """A simulation of a session that receives bytes, and of a page source that takes the result."""

    def __init__(self, answer: DirectAnswer | PullAnswer, bulk: BulkAnswer | None) -> None:
        self.frames: deque[Frame] = deque()
        self.others: list[Frame] = []
        self.events: list[object] = []
        self.bulk = bulk
        self.in_bulk = 0
        self._answer = answer
        self.parser = Parser({SID: self.frames.append, b"8": self.others.append})
        if bulk is not None:
            self.parser.hold_back(bulk)

    def receive(self, data: bytes) -> PageEnd | None:
        self.events += self.parser.feed(data)[1]
        end = None
        if self.bulk is not None and self.bulk.page is not None:
            self.in_bulk = len(self.bulk.page)
            end = self._answer.take_bulk(self.bulk.page)
            self.bulk = None
        frames = list(self.frames)
        self.frames.clear()
        return end or self._answer.take(frames)


class Reading:
    """One page, parsed from bytes in pieces: in bulk with `bulk`, otherwise frame by frame."""

    def __init__(self, data: bytes, cuts: list[int], *, by_pull: int = 0, bulk: bool) -> None:
        self.page = StoredPage()
        self.read = RangeRead(1, 1000)
        answer: DirectAnswer | PullAnswer = DirectAnswer(INBOX, b"S", self.read, self.page)
        kept: BulkAnswer | None = DirectBulk(SID, INBOX, b"S") if bulk else None
        if by_pull:
            answer = PullAnswer(b"9", self.read, self.page, by_pull)
            kept = PullBulk(SID, INBOX, NAME, by_pull) if bulk else None
        self.session = Session(answer, kept)
        self.end: PageEnd | None = None
        edges = sorted({0, len(data), *(cut % (len(data) + 1) for cut in cuts)})
        for low, high in pairwise(edges):
            self.end = self.session.receive(data[low:high]) or self.end

    def outcome(self) -> list[object]:
        found = ArrowPage.of(self.page)
        columns = (found.seqs, found.times.cast(found.seqs.type), found.subjects)
        rest = (found.headers, found.payloads)
        return [
            [column.to_pylist() for column in (*columns, *rest)],
            self.end,
            self.session.events,
            self.session.others,
            self.read.next_seq,
        ]


def same(data: bytes, cuts: list[int], by_pull: int = 0) -> Reading:
    """Parse in both ways, compare the results, and return the reading in bulk."""
    fast = Reading(data, cuts, by_pull=by_pull, bulk=True)
    assert fast.outcome() == Reading(data, cuts, by_pull=by_pull, bulk=False).outcome()
    return fast


PLAIN: list[Row] = [(b"a.b", b"", b"x" * at) for at in range(20)]
HEADED: list[Row] = [(b"a", STORED, b"%d" % at) for at in range(9)]


@pytest.mark.parametrize("rows", [PLAIN, HEADED, PLAIN[:1]])
@pytest.mark.parametrize("cuts", [[], [700], [333, 900, 901]])
def test_page_of_one_form_is_read_in_bulk(rows: list[Row], cuts: list[int]) -> None:
    for data, count in ((direct(rows), 0), (pull(rows), len(rows))):
        inside = [cut for cut in cuts if cut < len(data)]
        assert same(data, inside, count).session.in_bulk == len(rows)


def test_partly_received_page_has_the_received_messages() -> None:
    data, parser, told = direct(PLAIN), Parser({SID: lambda frame: None}), [0]
    parser.hold_back(DirectBulk(SID, INBOX, b"S"))
    for low, high in pairwise([0, 700, 1800, len(data)]):
        parser.feed(data[low:high])
        told.append(parser.needed)
    assert told == [0, 700, 1800, 0]


def test_stored_headers_may_differ_and_may_look_like_the_servers() -> None:
    rows: list[Row] = [(b"a", b"", b"1"), (b"b", STORED, b"2"), (b"c", COPIED, b"3")]
    assert same(direct(rows), []).session.in_bulk == 3
    assert same(direct([(b"c", COPIED, b"3")]), []).session.in_bulk == 1
    # A pull gives messages with headers in another form than those without.
    assert same(pull(rows), [], 3).session.in_bulk == 0


@pytest.mark.parametrize(
    "payload",
    [b"\r\n", b"\r\n\r\n", b"\r\nNATS/1.0 204 EOB\r\n\r\n", b"\r\nMSG a 7 b 0\r\n\r\n", b"HMSG "],
)
def test_payloads_may_look_like_the_protocol(payload: bytes) -> None:
    rows: list[Row] = [(b"a", b"", b"x"), (b"a", b"", payload), (b"a", b"", b"y"), (b"a", b"", b"")]
    assert same(direct(rows), [100]).session.in_bulk == 4
    assert same(pull(rows), [100], 4).session.in_bulk == 4


NOISE: list[bytes] = [b"PING\r\n", b"MSG x 8 3\r\nabc\r\n", b"INFO {}\r\n"]


@pytest.mark.parametrize("noise", NOISE)
@pytest.mark.parametrize("by_pull", [False, True])
def test_what_else_arrives_is_not_lost(noise: bytes, by_pull: bool) -> None:
    make: Callable[[list[Row], int], bytes] = pull if by_pull else direct
    count = len(PLAIN) if by_pull else 0
    data = make(PLAIN, 1)
    assert same(noise + data, [], count).session.in_bulk == len(PLAIN)
    assert same(data + noise, [], count).session.in_bulk == len(PLAIN)
    place = data.index(b"MSG", 1000) - (not by_pull)
    assert same(data[:place] + noise + data[place:], [], count).session.in_bulk == 0


def test_a_status_ends_a_page_without_a_message() -> None:
    for status in (b"404 Message Not Found", b"503", b"408 Batch Failed"):
        data = hmsg(INBOX, b"", b"NATS/1.0 %b\r\n\r\n" % status, b"")
        found = same(data, [])
        assert found.end is not None
        assert found.session.in_bulk == 0


def test_a_status_ends_a_pull_early() -> None:
    end = hmsg(INBOX, b"", b"NATS/1.0 404 No Messages\r\n\r\n", b"")
    found = same(pull(PLAIN) + end, [], 30)
    assert (found.end, found.session.in_bulk) == (PageEnd(), len(PLAIN))
    assert same(end, [], 30).session.in_bulk == 0
    # The last word on an earlier pull comes before the first message of the next.
    assert same(end.replace(b".9 ", b".8 ") + pull(PLAIN), [], 20).session.in_bulk == 20


def test_last_pending_count_shows_whether_more_remain() -> None:
    assert same(pull(PLAIN, left=3), [], 20).end == PageEnd(more=True)
    assert same(pull(PLAIN), [], 20).end == PageEnd(more=False)


def test_messages_outside_the_range_are_left_out() -> None:
    for start in (990, 995, 1000):
        assert same(direct(PLAIN, start), []).session.in_bulk == len(PLAIN)
    found = Reading(direct(PLAIN, 990), [], bulk=True)
    assert ArrowPage.of(found.page).seqs.to_pylist() == list(range(990, 1000))


def test_sequences_that_fall_take_the_ordinary_way() -> None:
    assert same(pull(PLAIN).replace(b".1.7.11.", b".2.7.11."), [], 20).session.in_bulk == 20
    assert same(pull(PLAIN).replace(b".1.7.11.", b".1.6.11."), [], 20).session.in_bulk == 0
    assert (
        same(direct(PLAIN[:3], 5).replace(b"Sequence: 6", b"Sequence: 5"), []).session.in_bulk == 0
    )


def test_given_up_it_leaves_what_it_kept_to_the_parser() -> None:
    data = direct(PLAIN)
    answer = DirectAnswer(INBOX, b"S", RangeRead(1, 99), page := StoredPage())
    session = Session(answer, DirectBulk(SID, INBOX, b"S"))
    assert session.receive(data[:700]) is None
    # The next page is requested in the meantime.
    session.parser.hold_back(DirectBulk(SID, INBOX, b"S"))
    assert session.receive(data[700:]) == PageEnd()
    assert (len(page.seqs), page.blocks) == (20, [])


def test_it_keeps_no_more_than_it_may(tuned: Tuned) -> None:
    tuned("page bytes", 1000)
    assert same(direct(PLAIN), [500, 1500]).session.in_bulk == 0


@pytest.mark.parametrize("seq", [21, 2**63])
def test_messages_that_came_singly_follow_those_in_bulk(seq: int) -> None:
    page = Reading(direct(PLAIN), [], bulk=True).page
    page.seqs.append(seq)
    page.subjects.append(b"c")
    page.times.append(b"2026-01-31T12:00:01Z")
    page.headers.append(b"NATS/1.0")
    page.payloads.append(b"last")
    found = ArrowPage.of(page)
    assert len(found) == len(page) == 21
    assert found.seqs.to_pylist() == [*range(1, 21), seq]
    last = [each[-1].as_py() for each in (found.subjects, found.headers, found.payloads)]
    assert last == [b"c", b"NATS/1.0", b"last"]
    assert str(found.times[-1]) == "2026-01-31 12:00:01+00:00"


TEXT = st.sampled_from([b"", b"x", b"\r\n", b"{}", b"\r\nNATS/1.0 204 ", b"HMSG " + INBOX + b" 7 "])
ROWS = st.lists(
    st.tuples(st.sampled_from([b"a", b"b.c"]), st.sampled_from([b"", STORED, COPIED]), TEXT),
    min_size=1,
    max_size=12,
)


@settings(deadline=None, max_examples=examples(150))
@given(ROWS, st.lists(st.integers(0, 5000), max_size=6), st.sampled_from([b"", *NOISE]))
def test_any_page_in_any_pieces(rows: list[Row], cuts: list[int], noise: bytes) -> None:
    same(direct(rows) + noise, cuts)
    same(noise + pull(rows) + noise, cuts, len(rows))


def test_columns_are_cut_without_numpy() -> None:
    # pyarrow before 21 takes a slice with a step by numpy, which it does not install.
    tree = ast.parse(inspect.getsource(arrow_columns))
    assert not [at.lineno for at in ast.walk(tree) if isinstance(at, ast.Slice) and at.step]


def test_line_that_arrives_in_small_pieces_is_not_scanned_repeatedly() -> None:
    looks: list[bytes] = []
    data = pull(PLAIN[5:6])
    begin, end = data.index(NAME.encode()) + len(NAME) + 1, data.index(b"\n") + 1
    with hooked("page: before look", looks.append):
        assert same(data, list(range(begin, end)), 1).session.in_bulk == 1
    assert len(looks) < 5

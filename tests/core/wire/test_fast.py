"""The fast readers of acknowledgements: their results equal those of the readable ones."""

from __future__ import annotations

from itertools import pairwise

from hypothesis import given
from hypothesis import strategies as st

from twinstream.core.wire.fast import BulkAcks
from twinstream.core.wire.protocol import Frame, Parser, Ping
from twinstream.core.wire.pub_ack import read_pub_ack
from twinstream.models import PubAck

SID = b"7"
INBOX = b"_INBOX.a+b."


def message(number: int, body: bytes, sid: bytes = SID, reply: bytes = b"") -> bytes:
    return b"MSG %b%d %b %b%d\r\n%b\r\n" % (INBOX, number, sid, reply, len(body), body)


def ack(number: int, seq: int, stream: bytes = b"S") -> bytes:
    return message(number, b'{"stream":"%b", "seq":%d}' % (stream, seq))


class Listener:
    """A reader of bytes, as a pipeline reads them. Without `cuts`, it reads each frame as JSON."""

    def __init__(self, cuts: bool) -> None:
        self.acks: list[tuple[bytes, PubAck]] = []
        self.others: list[Frame] = []
        self.events: list[object] = []
        self.cut = 0
        self.cutter = BulkAcks(SID, INBOX, self._take)
        self._read = self.cutter.read if cuts else read_pub_ack
        sinks = {SID: self._frame, b"8": self.others.append}
        self.parser = Parser(sinks, [self.cutter] if cuts else [])

    def hear(self, data: bytes) -> list[bytes]:
        touched, events = self.parser.feed(data)
        self.events += events
        return touched

    def _take(self, inboxes: list[bytes], acks: list[PubAck]) -> None:
        self.cut += len(acks)
        self.acks += zip(inboxes, acks, strict=True)

    def _frame(self, frame: Frame) -> None:
        self.acks.append((frame[0], self._read(frame, "s")))


def test_what_is_alike_is_cut_at_once_and_the_rest_is_the_parsers() -> None:
    listener = Listener(cuts=True)
    listener.hear(ack(1, 11) + ack(2, 12))
    assert (listener.cut, len(listener.acks)) == (0, 2)
    whole, torn = ack(3, 13) + ack(4, 14), ack(5, 15)
    assert listener.hear(whole + torn[:20]) == []
    assert listener.cut == 2
    assert listener.hear(torn[20:] + b"PING\r\n") == []
    assert listener.cut == 3
    assert listener.events == [Ping()]
    assert listener.acks[2:] == [
        (INBOX + b"%d" % at, PubAck(stream="S", seq=10 + at)) for at in (3, 4, 5)
    ]


def test_pattern_is_learned_again_for_longer_sequences_or_another_stream() -> None:
    listener = Listener(cuts=True)
    listener.hear(b"".join(ack(at, at) for at in range(1, 30)))
    listener.hear(ack(30, 30))
    assert listener.cut == 0
    listener.hear(b"".join(ack(at, at) for at in range(31, 120)))
    assert listener.cut == 69
    for _ in range(2):
        listener.hear(b"".join(ack(at, at) for at in range(120, 130)))
    assert listener.cut == 79
    for _ in range(2):
        listener.hear(b"".join(ack(at, at, b"OTHER") for at in range(130, 140)))
    assert listener.cut == 89
    assert listener.acks[-1] == (INBOX + b"139", PubAck(stream="OTHER", seq=139))


def test_answers_that_only_look_alike_are_not_cut() -> None:
    listener = Listener(cuts=True)
    listener.hear(ack(1, 1) + ack(2, 2))
    like = message(3, b'{"stream":"S", "seq":3,"duplicate":true}')
    listener.hear(like + message(4, b'{"stream":"S", "seq":4}', reply=b"r "))
    assert listener.cut == 0
    assert [found.duplicate for _, found in listener.acks] == [None, None, True, None]


def test_a_text_in_the_payload_of_somebody_else_is_no_acknowledgement() -> None:
    listener = Listener(cuts=True)
    listener.hear(ack(1, 1) + ack(2, 2))
    within = message(9, ack(3, 3), sid=b"8")
    listener.hear(within + ack(4, 4))
    listener.hear(ack(5, 5) + within)
    assert [inbox for inbox, _ in listener.acks] == [INBOX + b"%d" % at for at in (1, 2, 4, 5)]
    assert len(listener.others) == 2


SEQS = st.integers(0, 30)
PARTS = st.one_of(
    st.builds(ack, st.integers(0, 300), st.integers(1, 120), st.sampled_from([b"S", b"S", b"T"])),
    st.builds(lambda at: message(at, b'{"stream":"S","seq":%d}' % at), st.integers(1, 20)),
    st.builds(lambda at: message(at, b'{"stream":"S", "seq":%d,"duplicate": true}' % at), SEQS),
    st.sampled_from([b"PING\r\n", message(1, ack(7, 7), sid=b"8"), ack(1, 5) * 9]),
)


@given(parts=st.lists(PARTS, max_size=30), cuts=st.lists(st.integers(0, 2000), max_size=9))
def test_in_any_pieces_it_finds_what_the_parser_finds(parts: list[bytes], cuts: list[int]) -> None:
    data = b"".join(parts)
    ends = sorted({0, len(data), *(cut for cut in cuts if cut < len(data))})
    with_cutter, without = Listener(cuts=True), Listener(cuts=False)
    for start, end in pairwise(ends):
        with_cutter.hear(data[start:end])
    without.hear(data)
    assert with_cutter.acks == without.acks
    assert (with_cutter.others, with_cutter.events) == (without.others, without.events)

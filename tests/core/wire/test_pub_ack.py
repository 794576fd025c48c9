"""Parsing acknowledgements, with a fast path for similar ones."""

from __future__ import annotations

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.core.frames import block, status_frame
from twinstream.core.wire.fast import AckReader
from twinstream.core.wire.protocol import Frame
from twinstream.core.wire.pub_ack import is_pub_ack, read_pub_ack
from twinstream.errors import InvalidResponse, NoResponders, StoreFailed
from twinstream.models import PubAck, encode


def answer(body: bytes, headers: bytes = b"") -> Frame:
    return (b"_INBOX.x.1", b"", len(headers), headers + body + b"\r\n")


ANSWERS = [
    b'{"stream":"S","seq":1}',
    b'{"stream":"S","seq":2}',
    b'{"stream":"S","seq":12,"duplicate":true}',
    b'{"stream":"S","seq":13,"duplicate": true}',
    b'{"stream":"S","seq":0,"duplicate":true}',
    b'{"stream":"S", "seq":3}',
    b'{"stream":"S","seq": 4}',
    b'{"seq":5,"stream":"S"}',
    b'{"seq":6,"stream":"S"}',
    b'{"stream":"S","seq":4,"domain":"hub"}',
    b'{"stream":"S","seq":15123456789012345678,"domain":"hub"}',
    b'{"stream":"T","seq":5,"domain":"hub"}',
    b'{"stream":"S","seq":7}',
    b'{"stream":"C","seq":8,"val":"12"}',
    b'{"stream":"B","seq":9,"batch":"x","count":3}',
    b'{"stream":"S","seq":18446744073709551615}',
    b'{"stream":"\\"seq\\":","seq":1}',
    b'{"stream":"\\"seq\\":","seq":2}',
    b'{"stream":"\\"seq\\":1","seq":1}',
    b'{"stream":"\\"seq\\":1","seq":2}',
]


def test_every_answer_after_every_other_is_read_as_alone() -> None:
    for first in ANSWERS:
        for second in ANSWERS:
            reader = AckReader()
            for body in (first, second, first):
                assert reader.read(answer(body), "s") == read_pub_ack(answer(body), "s")


@given(
    st.text(min_size=1, max_size=8),
    st.none() | st.text(min_size=1, max_size=4),
    st.lists(st.integers(1, 2**64 - 1), min_size=2, max_size=4),
)
def test_a_quick_acknowledgement_equals_one_that_is_parsed(
    stream: str, domain: str | None, seqs: list[int]
) -> None:
    reader = AckReader()
    for seq in seqs:
        members = {"stream": stream, "seq": seq} | ({} if domain is None else {"domain": domain})
        frame = answer(json.dumps(members).encode())
        quick = reader.read(frame, "s")
        assert quick == read_pub_ack(frame, "s")
        assert type(quick) is PubAck
        with pytest.raises(AttributeError):
            quick.seq = 1  # type: ignore[misc]


def test_fast_acknowledgement_has_every_field_and_its_own_members() -> None:
    reader = AckReader()
    reader.read(answer(ANSWERS[0]), "s")
    quick, other = (reader.read(answer(body), "s") for body in ANSWERS[:2])
    assert repr(quick) == repr(PubAck(stream="S", seq=1))
    assert encode(quick) == {"stream": "S", "seq": 1}
    assert quick.unknown is not other.unknown
    assert reader.read(answer(ANSWERS[2]), "s").duplicate


@pytest.mark.parametrize(
    ("written", "name"),
    [
        (rb"a\x1cb", "a\x1cb"),
        (rb"\a\v\x7f\x01", "\a\v\x7f\x01"),
        (rb"\u00a0\u3000", "\xa0\u3000"),
        (rb"\U000e0001", "\U000e0001"),
        (rb"\\x1c\"", '\\x1c"'),
    ],
)
def test_a_name_is_read_as_go_writes_it(written: bytes, name: str) -> None:
    reader = AckReader()
    for seq in (1, 2, 3):
        body = b'{"stream":"%b","seq":%d,"domain":"%b"}' % (written, seq, written)
        assert reader.read(answer(body), "s") == PubAck(stream=name, seq=seq, domain=name)


def test_an_answer_with_headers_is_read_too() -> None:
    reader = AckReader()
    for _ in range(2):
        assert reader.read(answer(ANSWERS[0], block("", A="b")), "s").seq == 1


@pytest.mark.parametrize(
    ("body", "error"),
    [
        (b'{"stream":"S","seq":0}', InvalidResponse),
        (b'{"stream":"S","seq":}', InvalidResponse),
        (b'{"stream":"S","seq":-1}x', InvalidResponse),
        (b'{"stream":"S","seq":\xb2}', InvalidResponse),
        (b"", InvalidResponse),
        (b'{"error":{"code":503,"err_code":10077},"stream":"S","seq":0}', StoreFailed),
    ],
)
def test_what_is_no_acknowledgement_is_none_after_one_either(
    body: bytes, error: type[Exception]
) -> None:
    reader = AckReader()
    reader.read(answer(ANSWERS[0]), "s")
    with pytest.raises(error):
        reader.read(answer(body), "s")
    assert reader.read(answer(ANSWERS[1]), "s").seq == 2


def test_a_reply_without_responders_is_no_acknowledgement() -> None:
    with pytest.raises(NoResponders, match="s: no responders"):
        read_pub_ack(status_frame(503), "s")


def test_what_may_be_an_answer_of_a_stream() -> None:
    assert is_pub_ack(status_frame(503))
    assert is_pub_ack(answer(b'{"stream":"S"}'))
    assert is_pub_ack(answer(b'{"error":{}}'))
    assert not is_pub_ack(answer(b"+OK"))
    assert not is_pub_ack(answer(b""))


@pytest.mark.parametrize(
    ("body", "strange"),
    [
        (b'{"stream":"S","seq":1}', False),
        (b'{"stream":"S","seq":1,"domain":"hub"}', False),
        (b'{"stream":"S","seq":1,"domain":"leaf"}', True),
        (b'{"stream":"S","seq":1,"domain":["hub"]}', True),
        (b'{"stream":"T","seq":1,"domain":"hub"}', True),
        (b'{"error":{"code":400}}', False),
        (b"+OK", False),
    ],
)
def test_acknowledgements_of_other_streams_are_recognised(body: bytes, strange: bool) -> None:
    assert AckReader().is_strange(answer(body), "S", "hub") is strange

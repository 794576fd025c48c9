"""The reply subject of a delivery, and the payloads of acknowledgements."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st

from twinstream.core.consume.acks import ACK, IN_PROGRESS, nak, term
from twinstream.core.consume.metadata import Metadata, Positions, parse_ack_reply
from twinstream.errors import BadArgument

V1 = b"$JS.ACK.ORDERS.worker.2.17.5.1700000000123456789.3"
V2 = b"$JS.ACK.hub.ABCDEFGH.ORDERS.worker.2.17.5.1700000000123456789.3"
WANTED = Metadata("ORDERS", "worker", 2, 17, 5, 1700000000123456789, 3)


@pytest.mark.parametrize(
    ("reply", "domain"),
    [
        (V1, ""),
        (V2, "hub"),
        (V2 + b".random", "hub"),
        (V2 + b".random.and.more", "hub"),
        (V2.replace(b"hub", b"_"), ""),
    ],
)
def test_both_layouts(reply: bytes, domain: str) -> None:
    found = parse_ack_reply(reply)
    assert found == Metadata(*(getattr(WANTED, name) for name in Metadata.__slots__[:7]), domain)


@pytest.mark.parametrize(
    "reply",
    [
        b"",
        b"_INBOX.a.b",
        b"$JS.ACK",
        V1.rpartition(b".")[0],
        V1 + b".10tokens",
        V1.replace(b"$JS", b"$XX"),
        V1.replace(b"ACK", b"NAK"),
        V2.replace(b"ACK", b"FC"),
        V1.replace(b".17.", b".x."),
        V1.replace(b".17.", b"..17"),
        V1.replace(b"1700000000123456789", b"1.7e18"),
        b"a.b.c.d.e.f.g.h.i",
        b"a.b.c.d.e.f.g.h.i.j.k",
    ],
)
def test_what_is_not_jetstreams(reply: bytes) -> None:
    assert parse_ack_reply(reply) is None


@given(st.binary(max_size=80))
def test_no_reply_breaks_the_reading(reply: bytes) -> None:
    found = parse_ack_reply(reply)
    assert found is None or isinstance(found, Metadata)


@given(st.lists(st.integers(0, 2**64 - 1), min_size=5, max_size=5))
def test_numbers_are_exact(numbers: list[int]) -> None:
    reply = b"$JS.ACK.S.C." + b".".join(b"%d" % number for number in numbers)
    found = parse_ack_reply(reply)
    assert found is not None
    assert [
        found.num_delivered,
        found.stream_seq,
        found.consumer_seq,
        found.timestamp_ns,
        found.num_pending,
    ] == numbers


def test_time_of_a_message() -> None:
    assert WANTED.timestamp == datetime(2023, 11, 14, 22, 13, 20, 123456, UTC)
    assert WANTED.timestamp_ns == 1700000000123456789


def test_acknowledgements_are_encoded_as_servers_parse_them() -> None:
    assert (ACK, IN_PROGRESS) == (b"+ACK", b"+WPI")
    assert nak(None) == b"-NAK"
    assert nak(0) == b'-NAK {"delay": 0}'
    assert nak(1.5) == b'-NAK {"delay": 1500000000}'
    assert nak(timedelta(milliseconds=20)) == b'-NAK {"delay": 20000000}'
    assert term(None) == b"+TERM"
    assert term("no use") == b"+TERM no use"
    assert term("für nichts") == "+TERM für nichts".encode()


@pytest.mark.parametrize("delay", [-1, float("nan"), timedelta(seconds=-1), float("inf")])
def test_delays_that_are_none(delay: float | timedelta) -> None:
    with pytest.raises(BadArgument, match="delay"):
        nak(delay)


@pytest.mark.parametrize(
    ("reason", "sent"),
    [
        ("two\r\nlines", b"two lines"),
        ("a\udc80\0b", b"a? b"),
        ("\ud800", b"?"),
        ("\x1b[31mred\x7f", b" [31mred "),
    ],
)
def test_a_reason_is_one_line_that_never_fails(reason: str, sent: bytes) -> None:
    assert term(reason) == b"+TERM " + sent


def test_a_reason_that_is_no_text_is_refused() -> None:
    with pytest.raises(BadArgument, match=r"reason must be text, got ValueError\('x'\)"):
        term(ValueError("x"))  # type: ignore[arg-type]


SPOILED = st.sampled_from([V1, V2, V2 + b".more", V1 + b".1", V1[:-2]]).flatmap(
    lambda reply: st.sampled_from([reply, reply.replace(b"17", b"x"), reply.replace(b"17", b"18")])
)


@given(
    st.lists(
        st.one_of(
            SPOILED,
            st.binary(max_size=80),
            st.lists(st.integers(-5, 2**70), max_size=6).map(
                lambda numbers: b".".join([b"$JS.ACK.S.c", *(b"%d" % each for each in numbers)])
            ),
        )
    )
)
def test_positions_are_those_of_the_metadata(replies: list[bytes]) -> None:
    positions = Positions()
    for reply in replies:
        found = parse_ack_reply(reply)
        wanted = found and (
            found.stream_seq,
            found.consumer_seq,
            found.timestamp_ns,
            found.num_pending,
        )
        assert positions.read(reply) == wanted

"""The table of statuses: every text that a server sends, and texts of future servers."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.core.frames import block, delivery, status_frame
from twinstream.core.wire.status import Kind, classify, is_status, read_status

# Source: nats-server 2.2 to 2.15; the texts as they are on the wire.
TEXTS = [
    (100, "Idle Heartbeat", Kind.HEARTBEAT),
    (100, "FlowControl Request", Kind.FLOW_CONTROL),
    (400, "Bad Request - heartbeat value too large", Kind.BAD_REQUEST),
    (400, "Bad Request - Priority Group missing", Kind.BAD_REQUEST),
    (404, "No Messages", Kind.NO_MESSAGES),
    (408, "Request Timeout", Kind.EXPIRED),
    (408, "Requests Pending", Kind.NO_MESSAGES),
    (408, "Interest Expired", Kind.EXPIRED),
    (408, "Message Size Exceeds MaxBytes", Kind.TOO_BIG),
    (409, "Message Size Exceeds MaxBytes", Kind.TOO_BIG),
    (409, "Batch Completed", Kind.COMPLETED),
    (409, "Batch-Completed", Kind.COMPLETED),
    (409, "Exceeded MaxRequestBatch of 2", Kind.REFUSED),
    (409, "Exceeded MaxRequestExpires of 1s", Kind.REFUSED),
    (409, "Exceeded MaxRequestMaxBytes of 100", Kind.REFUSED),
    (409, "Exceeded MaxWaiting", Kind.BUSY),
    (409, "Exceeded MaxAckPending", Kind.BUSY),
    (409, "Leadership Change", Kind.INTERRUPTED),
    (409, "Consumer Migration", Kind.INTERRUPTED),
    (409, "Server Shutdown", Kind.INTERRUPTED),
    (409, "Consumer Deleted", Kind.DELETED),
    (409, "Consumer is push based", Kind.NOT_PULL),
    (412, "Required Api Level", Kind.BAD_REQUEST),
    (423, "Nats-Wrong-Pin-Id", Kind.UNPINNED),
    (423, "Nats-Pin-Id mismatch", Kind.UNPINNED),
    (503, "", Kind.NO_RESPONDERS),
    (409, "Something New", Kind.UNKNOWN),
    (409, "", Kind.UNKNOWN),
    (204, "EOB", Kind.UNKNOWN),
    (599, "?", Kind.UNKNOWN),
]


@pytest.mark.parametrize(("code", "text", "kind"), TEXTS)
def test_texts_of_the_servers(code: int, text: str, kind: Kind) -> None:
    assert classify(code, text) is kind
    assert classify(code, text.upper()) is kind
    frame = status_frame(code, text, b"T7")
    assert is_status(frame)
    status = read_status(frame)
    assert (status.kind, status.code, status.text, status.token) == (kind, code, text, b"T7")
    assert (status.pending_messages, status.pending_bytes) == (None, None)
    assert str(status) == f"{code} {text}".strip()
    assert status.ends is (kind not in {Kind.HEARTBEAT, Kind.FLOW_CONTROL})


@given(st.integers(100, 599), st.text(st.characters(codec="ascii", exclude_characters="\r\n\0")))
def test_every_code_and_text_is_a_status_that_ends_or_a_sign_of_life(code: int, text: str) -> None:
    status = read_status(status_frame(code, text.strip()))
    assert status.ends is (code != 100)


def test_status_contains_the_pending_messages() -> None:
    frame = status_frame(408, "Request Timeout", Nats_Pending_Messages=12, Nats_Pending_Bytes=2**40)
    status = read_status(frame)
    assert (status.pending_messages, status.pending_bytes) == (12, 2**40)


@pytest.mark.parametrize("value", ["", "x", "-1", "1.5", "٣"])
def test_pending_counts_that_are_none(value: str) -> None:
    status = read_status(status_frame(408, "Request Timeout", Nats_Pending_Messages=value))
    assert status.pending_messages is None
    assert status.pending_bytes is None


def test_a_heartbeat_with_headers() -> None:
    frame = status_frame(100, "Idle Heartbeat", Nats_Last_Consumer=3, Nats_Last_Stream=7)
    assert read_status(frame).kind is Kind.HEARTBEAT


def test_flow_control_has_a_reply() -> None:
    assert is_status(status_frame(100, "FlowControl Request", reply=b"$JS.FC.S.C.1"))


def test_a_message_is_no_status() -> None:
    assert not is_status(delivery(1))
    assert not is_status(delivery(1, b""))
    head = block("", A="b")
    assert not is_status((b"s", b"$JS.ACK.x", len(head), head + b"\r\n"))
    bare = block("")
    assert not is_status((b"s", b"$JS.ACK.x", len(bare), bare + b"\r\n"))
    assert not is_status((b"s", b"", 8, b"NATS/1.0\r\n"))
    assert not is_status((b"s", b"", len(bare), block(" no code") + b"\r\n"))


@pytest.mark.parametrize("line", [" 409 Consumer Deleted", " 503", " 404 No Messages"])
def test_a_publisher_cannot_forge_a_status(line: str) -> None:
    """Any client may publish a header block that begins like a status. It stays a message."""
    head = block(line)
    reply = delivery(1)[1]
    assert not is_status((b"orders.new", reply, len(head), head + b"\r\n"))

"""Publishing into a stream: the headers of its promises, and reading the acknowledgement.

Source: ADR-22, ADR-42, ADR-43 and nats-server `processJetStreamMsg`.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final

from attrs import frozen

from js_core.answers import read_answer
from js_core.deadline import Seconds, finite_seconds
from js_core.errors import BadAnswer, BadArgument, TwinstreamError
from js_core.headers import Headers, HeaderValues, encode_headers
from js_core.protocol import Frame
from js_models import PubAck

__all__ = ["PublishFailure", "PublishRequest", "publish_headers", "read_pub_ack"]

MSG_ID: Final = "Nats-Msg-Id"
EXPECTED_STREAM: Final = "Nats-Expected-Stream"
EXPECTED_LAST_SEQ: Final = "Nats-Expected-Last-Sequence"
EXPECTED_LAST_MSG_ID: Final = "Nats-Expected-Last-Msg-Id"
EXPECTED_LAST_SUBJECT_SEQ: Final = "Nats-Expected-Last-Subject-Sequence"
TTL: Final = "Nats-TTL"


@frozen(kw_only=True)
class PublishRequest:
    """One message for `publish_many`: what `publish` takes, as a value."""

    subject: str
    data: bytes = b""
    headers: HeaderValues | None = None
    msg_id: str | None = None
    """Identity within the stream's duplicate window."""
    expected_stream: str | None = None
    expected_last_seq: int | None = None
    expected_last_msg_id: str | None = None
    expected_last_subject_seq: int | None = None
    """0: the subject must hold nothing yet."""
    ttl: Seconds | None = None
    """Seconds until the server removes the message, whole ones from 1 up (server 2.11)."""


@frozen
class PublishFailure:
    """A message of `publish_many` that was not acknowledged, and why."""

    request: PublishRequest
    error: TwinstreamError


def publish_headers(request: PublishRequest) -> bytes:
    """Return the header block for a message and its promises, empty when there is none."""
    promises: dict[str, str] = {}
    if request.msg_id is not None:
        if not request.msg_id:
            raise BadArgument("msg_id may not be empty: leave it out for no deduplication")
        promises[MSG_ID] = request.msg_id
    if request.expected_stream is not None:
        promises[EXPECTED_STREAM] = request.expected_stream
    if request.expected_last_seq is not None:
        promises[EXPECTED_LAST_SEQ] = str(request.expected_last_seq)
    if request.expected_last_msg_id is not None:
        promises[EXPECTED_LAST_MSG_ID] = request.expected_last_msg_id
    if request.expected_last_subject_seq is not None:
        promises[EXPECTED_LAST_SUBJECT_SEQ] = str(request.expected_last_subject_seq)
    if request.ttl is not None:
        promises[TTL] = _ttl(request.ttl)
    if not request.headers:
        return encode_headers(promises)
    doubled = promises.keys() & set(request.headers)
    if doubled:
        raise BadArgument(f"header {min(doubled)} is given twice: as an argument and in headers")
    given = request.headers
    both: dict[str, str | Iterable[str]] = {name: _values(given, name) for name in given}
    return encode_headers(both | promises)


def _values(headers: HeaderValues, name: str) -> str | Iterable[str]:
    return headers.get_all(name) if isinstance(headers, Headers) else headers[name]


def _ttl(ttl: Seconds) -> str:
    whole = finite_seconds(ttl, "ttl")
    if whole < 1 or whole != int(whole):
        raise BadArgument(
            f"ttl must be whole seconds from 1 up, got {ttl!r}: the server cuts parts"
        )
    return str(int(whole))


def read_pub_ack(frame: Frame, subject: str) -> PubAck:
    """Return the acknowledgement in an answer, or raise what it says instead."""
    _, _, header_size, body = frame
    answer = read_answer(body[header_size:-2], subject)
    stream, seq = answer.get("stream"), answer.get("seq")
    if not isinstance(stream, str) or type(seq) is not int:
        raise BadAnswer(f"{subject}: the answer is not a publish acknowledgement: {body[:80]!r}")
    if seq == 0 and not answer.get("duplicate"):
        raise BadAnswer(f"{subject}: acknowledged with sequence 0, so nothing was stored")
    return PubAck(
        stream=stream,
        seq=seq,
        domain=answer.get("domain"),
        duplicate=answer.get("duplicate"),
        val=answer.get("val"),
        batch=answer.get("batch"),
        count=answer.get("count"),
    )

"""Parse publish acknowledgements. `fast.AckReader` does the same in less time."""

from __future__ import annotations

import json
import re
from typing import Final

from twinstream.core.wire.header_text import go_unquoted
from twinstream.core.wire.protocol import Frame
from twinstream.core.wire.response import read_answer
from twinstream.core.wire.status import is_unserved
from twinstream.errors import InvalidResponse, NoResponders
from twinstream.models import PubAck

__all__ = ["is_of", "is_pub_ack", "read_pub_ack"]

_ESCAPE: Final = rb"\\(?:x[0-9a-f]{2}|U[0-9a-f]{8}|.)"
_NOT_IN_JSON: Final = b"xUav"
_LAST_SEQ: Final = 2**64 - 1


def is_pub_ack(frame: Frame) -> bool:
    """Return whether a reply may be an acknowledgement, an error or a status of the server.

    A core NATS subscriber to the published subject may reply, too. Such a reply rarely has headers
    or the members `stream` or `error`.
    """
    return b'"stream"' in frame[3] or frame[2] > 0 or b'"error"' in frame[3]


def is_of(ack: PubAck, stream: str, domain: str | None) -> bool:
    """Return whether `stream` of `domain` sent `ack`; None means an unknown domain.

    Connected domains may have streams of the same name and subjects. Each of these streams stores
    the published message and replies.
    """
    # In the reply of a core NATS subscriber, `domain` may be any JSON value. A look-up in a set
    # would fail for a list or an object, so the values are compared with `==`.
    known = domain is not None and ack.domain is not None
    return ack.stream == stream and (not known or ack.domain == domain)


def read_pub_ack(frame: Frame, subject: str) -> PubAck:
    """Return the acknowledgement in a reply.

    Raises a `JetStreamError` for an error response, `NoResponders` for the server's 503, and
    `InvalidResponse` for any other reply.
    """
    _, _, header_size, body = frame
    if header_size and is_unserved(frame):
        raise NoResponders(f"{subject}: no responders for this subject")
    payload = body[header_size:-2]
    answer = read_answer(_as_json(payload) if b"\\" in payload else payload, subject)
    stream, seq = answer.get("stream"), answer.get("seq")
    if not isinstance(stream, str) or type(seq) is not int or not 0 <= seq <= _LAST_SEQ:
        raise InvalidResponse(
            f"{subject}: the reply is not a publish acknowledgement: {body[:80]!r}"
        )
    if seq == 0 and not answer.get("duplicate"):
        raise InvalidResponse(f"{subject}: acknowledged with sequence 0, so nothing was stored")
    return PubAck(
        stream=stream,
        seq=seq,
        domain=answer.get("domain"),
        duplicate=answer.get("duplicate"),
        val=answer.get("val"),
        batch=answer.get("batch"),
        count=answer.get("count"),
    )


def _as_json(payload: bytes) -> bytes:
    """Replace Go's escape sequences in an acknowledgement by those of JSON.

    The server writes the names of stream and domain with Go's `%q`. This differs from JSON for
    control characters and for unprintable characters above U+FFFF.
    """
    return re.sub(_ESCAPE, _json_escape, payload, flags=re.DOTALL)


def _json_escape(found: re.Match[bytes]) -> bytes:
    escape = found.group()
    if escape[1] not in _NOT_IN_JSON:
        return escape
    letter = go_unquoted(escape.decode()).decode("utf-8", "replace")
    return json.dumps(letter)[1:-1].encode()

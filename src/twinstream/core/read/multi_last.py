"""Read the last messages of many subjects with one direct get: the requests and the responses.

A response is a consistent view, because the server looks up all subjects at once. The status that
ends the response contains the sequence up to which the server looked (ADR-31). If a replica
replied, this sequence also shows how far it had caught up with the leader.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final

from attrs import frozen

from twinstream.core.read.page import (
    MIRROR_ANSWERED,
    StoredPage,
    direct_tail,
    is_from,
    stored_headers,
)
from twinstream.core.wire.headers import parse_status
from twinstream.core.wire.protocol import Frame
from twinstream.core.wire.response import write_json
from twinstream.errors import InvalidResponse
from twinstream.models.digits import natural
from twinstream.records.headers import Headers

__all__ = ["LARGEST", "MultiAnswer", "MultiEnd", "chunks", "multi_request"]

LARGEST: Final = 1024
"""Maximum number of subjects in one request. The server refuses more with the status 413."""

# Maximum bytes of subjects in one request, well below the server's default limit of 1 MiB for a
# message.
_REQUEST_BYTES: Final = 256 * 1024

# Maximum bytes of messages in one response. It is well below 64 MiB, the default limit of pending
# bytes at which the server disconnects a client that reads slowly.
_ANSWER_BYTES: Final = 16 * 1024 * 1024


def chunks(filters: Sequence[str]) -> list[tuple[str, ...]]:
    """Split filters into parts, each small enough for one request."""
    found: list[tuple[str, ...]] = []
    part: list[str] = []
    size = 0
    for each in filters:
        if part and (len(part) == LARGEST or size + len(each) > _REQUEST_BYTES):
            found.append(tuple(part))
            part, size = [], 0
        part.append(each)
        size += len(each)
    return [*found, tuple(part)]


def multi_request(
    filters: Sequence[str],
    *,
    seq: int | None = None,
    up_to_seq: int | None = None,
    max_bytes: int = _ANSWER_BYTES,
) -> bytes:
    """Return the request for the last message of each subject that the filters match.

    With `seq`, the response has only messages at or after that sequence. With `up_to_seq`, it has
    the last messages as of that sequence. `max_bytes` limits the messages in the response.
    """
    body: dict[str, Any] = {"multi_last": list(filters), "max_bytes": max_bytes}
    if seq is not None:
        body["seq"] = seq
    if up_to_seq is not None:
        body["up_to_seq"] = up_to_seq
    return write_json(body)


@frozen
class MultiEnd:
    """The end of a response, as reported by the server."""

    up_to: int = 0
    """The sequence up to which the server looked; 0 if it found no message or if it failed."""
    more: bool = False
    """Whether there are more messages, which did not fit into the response."""
    too_many: bool = False
    """Whether the filters match more subjects than one request allows."""
    failure: str = ""
    """Why the response failed; empty if it succeeded."""
    missing: bool = False
    """Whether there were no responders: no stream, no `allow_direct`, or no leader."""
    mirror: bool = False
    """Whether a mirror replied instead of the stream."""


class MultiAnswer:
    """The response to one request of `stream`. Its messages are added to `page`.

    It arrives on the subject `reply`. Frames of other subjects are ignored.
    """

    def __init__(self, reply: bytes, stream: bytes, page: StoredPage) -> None:
        self._reply: Final = reply
        self._stream: Final = stream
        self._page: Final = page
        self._messages = 0

    def take(self, frames: list[Frame]) -> MultiEnd | None:
        """Process frames; return the end of the response, or None if it has not arrived.

        Raises `InvalidResponse` for a frame that is neither a stored message nor a status.
        """
        for subject, _, header_size, body in frames:
            if subject != self._reply:
                continue
            found = direct_tail(body, header_size)
            # In a status, a blank and the code follow "NATS/1.0".
            if found is None and header_size > 8 and body[8] == 32:
                return self._end(body[:header_size])
            if found is None or found[4] is None:
                raise InvalidResponse(f"not a reply for many subjects: {body[:header_size]!r}")
            if not is_from(found, self._stream):
                return MultiEnd(failure=MIRROR_ANSWERED, mirror=True)
            self._messages += 1
            self._page.seqs.append(int(found[2]))
            self._page.subjects.append(found[1])
            self._page.times.append(found[3])
            self._page.headers.append(stored_headers(found))
            self._page.payloads.append(body[header_size:-2])
        return None

    def _end(self, block: bytes) -> MultiEnd:
        """Return how the reply ended, from the header block of its final message.

        204 ends a complete reply, 404 is the reply without messages, and 413 has too many subjects.
        """
        code, text = parse_status(block)
        if code == 204:
            headers = Headers.parse(block)
            up_to = natural(headers.get("Nats-UpTo-Sequence", "0"))
            if up_to is None:
                raise InvalidResponse(f"not the end of a reply for many subjects: {block[:80]!r}")
            return MultiEnd(up_to=up_to, more=headers.get("Nats-Num-Pending", "0") != "0")
        if code == 404 and not self._messages:
            return MultiEnd()
        if code == 413:
            return MultiEnd(too_many=True)
        # A 404 after messages is a failure, too. The server had found a message, which was removed
        # before the server could send it.
        return MultiEnd(failure=f"{code} {text}".strip(), missing=code == 503)

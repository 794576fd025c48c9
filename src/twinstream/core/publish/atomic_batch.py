"""Atomic batches: the headers of their messages, and checks of the server's rules for batches.

Theory of operation (ADR-50, server 2.12). The headers of each message contain the batch's id and
the message's number, counted from 1 without gaps. The server stages the messages outside of the
stream until the commit arrives. Then it checks the expectations against the state before the batch,
and stores either all messages, consecutively, or none. If a number is out of sequence, the server
drops the batch at once. A client sends such a number to abandon a batch, because there is no
request for that. The server also drops a batch that was idle for ten seconds.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING, Final

from twinstream.core.arguments.check_arguments import check_kind, check_whole
from twinstream.core.publish.limits import BATCH_MESSAGES
from twinstream.core.publish.request import publish_headers
from twinstream.core.server_faults.table import BATCH_REWRITES
from twinstream.core.wire.headers import encode_headers
from twinstream.core.wire.protocol import Frame
from twinstream.core.wire.pub_ack import read_pub_ack
from twinstream.errors import BadArgument, InvalidResponse, Unsupported
from twinstream.models.digits import natural
from twinstream.records.header_names import (
    EXPECTED_LAST_MSG_ID,
    EXPECTED_LAST_SEQ,
    EXPECTED_LAST_SUBJECT_SEQ,
    EXPECTED_LAST_SUBJECT_SEQ_SUBJECT,
    INCREMENT,
    MSG_ID,
    ROLLUP,
    SCHEDULE,
)
from twinstream.records.headers import Headers
from twinstream.records.publish_request import PublishRequest

if TYPE_CHECKING:
    from twinstream.models import PubAck, StreamInfo, Timestamp

__all__ = [
    "BatchSheet",
    "commit_seq",
    "doubt_of_absence",
    "read_batch_ack",
    "read_staged",
]

BATCH_ID: Final = "Nats-Batch-Id"
BATCH_SEQUENCE: Final = "Nats-Batch-Sequence"
BATCH_COMMIT: Final = "Nats-Batch-Commit"
_STORE_THIS: Final = "1"
_END_OF_BATCH: Final = "eob"

_SINCE: Final = (2, 12, 0)
_SINCE_IDS: Final = (2, 12, 1)

# Bytes (ADR-50).
_MAX_ID: Final = 64
# Distance from the last number to the number that makes the server drop the batch. The server would
# accept the next number.
_GAP: Final = 3


class BatchSheet:
    """The state of one batch. It numbers the messages and checks the server's rules for them."""

    def __init__(self, batch_id: str, limit: int = BATCH_MESSAGES) -> None:
        check_kind(batch_id, str, "a batch id", "text")
        if not batch_id or len(batch_id.encode("utf-8", "replace")) > _MAX_ID:
            raise BadArgument(f"a batch id has 1 to {_MAX_ID} bytes, got {batch_id!r}")
        check_whole(limit, "max_messages")
        self.id: Final = batch_id
        self.limit: Final = limit
        self.count = 0
        """The number of messages added so far."""
        self.expected = 0
        """The highest last sequence that a message expects; 0 if no message expects one."""
        self._has_ids = False
        self._has_rewrites = False
        self._written: set[str] = set()
        self._ids: set[str] = set()

    def add(self, request: PublishRequest) -> bytes:
        """Add a message to the batch, and return its header block.

        Raises `BadArgument` if the batch is full, or if the message has a header that is not
        allowed in a batch or in this position.
        """
        if self.count >= self.limit:
            raise BadArgument(
                f"the batch is full: the server accepts {self.limit} messages in one; use several,"
                " or pass max_messages= if the server is configured for more"
            )
        block = publish_headers(request)
        if block:
            self._check_headers(Headers.parse(block), request.subject)
            self.expected = max(self.expected, request.expected_sequence or 0)
        self.count += 1
        self._written.add(request.subject)
        return _with(block, ((BATCH_ID, self.id), (BATCH_SEQUENCE, str(self.count))))

    def _check_headers(self, headers: Headers, subject: str) -> None:
        """Raise `BadArgument` if the server would refuse a header of the message."""
        batch_headers = [name for name in headers if name.startswith("Nats-Batch-")]
        if batch_headers:
            raise BadArgument(f"header {batch_headers[0]} is set by the batch: remove it")
        if EXPECTED_LAST_MSG_ID in headers:
            raise BadArgument("expected_last_msg_id cannot be used in an atomic batch (ADR-50)")
        if self.count and EXPECTED_LAST_SEQ in headers:
            raise BadArgument(
                "expected_last_seq is allowed in the first message of a batch only: it is checked"
                " against the state before the batch"
            )
        expected_subject = headers.get(EXPECTED_LAST_SUBJECT_SEQ_SUBJECT, subject)
        if EXPECTED_LAST_SUBJECT_SEQ in headers and expected_subject in self._written:
            raise BadArgument(
                f"expected_last_subject_seq: {expected_subject} was written earlier in this batch,"
                " but the server checks the state before the batch"
            )
        self._has_rewrites |= INCREMENT in headers or SCHEDULE in headers
        self._check_rollup(headers.get(ROLLUP), subject)
        self._check_id(headers.get(MSG_ID))

    def _check_rollup(self, rollup: str | None, subject: str) -> None:
        if rollup == "all" and self.count:
            raise BadArgument("rollup 'all' is allowed in the first message of a batch only")
        if rollup == "sub" and subject in self._written:
            raise BadArgument(f"rollup: {subject} was written earlier in this batch")

    def _check_id(self, msg_id: str | None) -> None:
        if msg_id is None:
            return
        if msg_id in self._ids:
            raise BadArgument(f"msg_id {msg_id!r} occurs twice in the batch: the server refuses it")
        self._ids.add(msg_id)
        self._has_ids = True

    def check_server(self, version: tuple[int, ...], text: str) -> None:
        """Raise `Unsupported` if the server is too old for the messages; `text` is its version."""
        if version < _SINCE:
            raise Unsupported(f"an atomic batch needs server 2.12.0, connected to {text}")
        if self._has_ids and version < _SINCE_IDS:
            raise Unsupported(f"msg_id in an atomic batch needs server 2.12.1, connected to {text}")
        if self._has_rewrites and BATCH_REWRITES.affects(version):
            raise Unsupported(
                "counters and schedules in an atomic batch need server 2.12.12 or 2.14.3, connected"
                f" to {text}: earlier, streams without replicas store them incorrectly"
            )

    def commit_with(self, block: bytes) -> bytes:
        """Return `block`, the header block of the last message, with the commit added to it.

        The message belongs to the batch.
        """
        return _with(block, ((BATCH_COMMIT, _STORE_THIS),))

    def commit_after(self) -> bytes:
        """Return the header block of an additional message, which only commits (server 2.14).

        The server does not store this message.
        """
        pairs = ((BATCH_ID, self.id), (BATCH_SEQUENCE, str(self.count + 1)))
        return _with(b"", (*pairs, (BATCH_COMMIT, _END_OF_BATCH)))

    def drop(self) -> bytes:
        """Return the header block of a message that makes the server drop the batch.

        The server does not store this message. Once it has replied, a commit that is still in
        flight has no effect.
        """
        return _with(b"", ((BATCH_ID, self.id), (BATCH_SEQUENCE, str(self.count + _GAP))))


def _with(block: bytes, pairs: Iterable[tuple[str, str]]) -> bytes:
    """Return a header block with additional lines."""
    added = encode_headers(dict(pairs))
    if not block:
        return added
    return block[:-2] + added[added.index(b"\r\n") + 2 :]


def read_staged(frame: Frame, subject: str) -> None:
    """Check the reply to a message before the commit.

    Raises the error in the reply, or `InvalidResponse` if the message was stored immediately.
    """
    _, _, header_size, body = frame
    if len(body) - header_size > 2:
        # The reply for a staged message is empty. If the body is an error, read_pub_ack raises it.
        read_pub_ack(frame, subject)
        raise InvalidResponse(
            f"{subject}: stored immediately instead of staged for the batch; its stream or the"
            " server does not support atomic batches"
        )


def read_batch_ack(frame: Frame, subject: str, sheet: BatchSheet) -> PubAck:
    """Return the acknowledgement of a commit; raises `InvalidResponse` for another batch."""
    ack = read_pub_ack(frame, subject)
    if ack.batch != sheet.id or ack.count != sheet.count or ack.seq < sheet.count:
        raise InvalidResponse(
            f"{subject}: the acknowledgement is for {ack.count} messages of batch {ack.batch} up to"
            f" sequence {ack.seq}, not for {sheet.count} of {sheet.id}"
        )
    return ack


def commit_seq(headers: Headers, batch_id: str) -> int:
    """Return the batch sequence of a stored message if it is the last of the batch, else 0."""
    if headers.get(BATCH_ID) != batch_id or BATCH_COMMIT not in headers:
        return 0
    return natural(headers.get(BATCH_SEQUENCE)) or 0


def doubt_of_absence(info: StreamInfo, since: Timestamp) -> str:
    """Return why a batch that was not found in the stream may have been stored nevertheless.

    Return an empty string if the batch was certainly not stored. `since` is a time before the
    commit. The caller requests `info` after the server has dropped the batch.
    """
    state = info.state
    if (info.config.num_replicas or 1) > 1:
        return "the stream has replicas, and the commit may be in flight between them"
    if state.last_ts is not None and state.last_ts < since:
        return ""
    front = state.first_seq > 1 and (state.first_ts is None or state.first_ts >= since)
    if not state.messages or state.num_deleted or front:
        return "messages were removed from the stream, possibly those of the batch"
    return ""

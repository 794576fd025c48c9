"""Fast ingest: the numbers of the messages of a batch, and the outcome of each from the replies.

Theory of operation (ADR-50, server 2.14). A message of a batch has the reply subject
`<inbox>.<batch>.<interval>.<gaps>.<number>.<operation>.$FI`. The server stores it when it arrives.
The first message opens the batch. The reply to it contains the interval of acknowledgements, which
is at most the requested one. After each interval the server replies that it has handled the
messages up to a number. Each such reply may change the interval.

These replies contain no stream sequence, and a ping only repeats the last reply. So the messages
after the last reply are confirmed only at the end of the batch. The server replies to the commit
with a publish acknowledgement, whose `count` is the last number handled.

With gaps "fail", a missing number or a message that the server refuses ends the batch at that
point, and the messages before it are stored. With gaps "ok" the batch continues. But a handled
message may be missing from the stream, since the server reports a gap only once, and this report
may be lost. If a batch was idle for ten seconds, the server drops it without a notice. It replies
to later messages of the batch that it does not know the batch (10208).
"""

from __future__ import annotations

from enum import Enum, auto
from typing import TYPE_CHECKING, Any, Final, Literal, cast

from attrs import frozen

import twinstream.models
from twinstream.core.publish.limits import INGEST_INTERVAL, INGEST_INTERVALS
from twinstream.core.wire.protocol import Frame
from twinstream.core.wire.response import read_object
from twinstream.core.wire.status import is_unserved
from twinstream.errors import (
    BadArgument,
    InvalidResponse,
    JetStreamError,
    NoResponders,
    TwinstreamError,
    api_error,
)
from twinstream.errors.transient import is_transient
from twinstream.models.digits import natural

if TYPE_CHECKING:
    from twinstream.models import PubAck, StreamConfig

__all__ = [
    "FastBatch",
    "Fate",
    "Gaps",
    "Ingested",
    "check_gaps",
    "check_headers",
    "check_stream",
    "interval_for",
]

Gaps = Literal["fail", "ok"]
"""What a batch does after a missing number or a refused message: it fails, or it continues."""

_START: Final = 0
_APPEND: Final = 1
_COMMIT: Final = 3
_PING: Final = 4


@frozen
class Ingested:
    """A message that was stored by fast ingest.

    The server reports neither the sequence of the message nor whether the message was a duplicate.
    """

    stream_name: str
    """Name of the stream."""
    batch: str
    """Id of the batch."""
    number: int
    """The number of the message in the batch, counted from 1."""
    is_certain: bool = True
    """Whether the message is certainly stored.

    It is false with `gaps="ok"`. Then the server has handled the messages up to this one and has
    not reported this one as lost, but such a report may itself be lost.
    """


class Fate(Enum):
    """The outcome of a message of a batch, as far as it is known."""

    STORED = auto()
    """The message is in the stream, or a duplicate of a stored message."""
    PASSED = auto()
    """The server has handled the messages up to this one (with gaps "ok").

    It has not reported this one as lost, but such a report may itself be lost."""
    REFUSED = auto()
    """The server refused the message with an error; a retry would not help."""
    LOST = auto()
    """The message is not stored: the server has reported a gap at its number (with gaps "ok")."""
    AGAIN = auto()
    """The message is not stored and may be sent again."""
    UNKNOWN = auto()
    """The outcome is not known, or not known yet."""


def check_gaps(gaps: Gaps) -> Gaps:
    """Return `gaps`; raises `BadArgument` if it is invalid."""
    if gaps not in ("fail", "ok"):
        raise BadArgument(f"gaps must be 'fail' or 'ok', got {gaps!r}")
    return gaps


def check_stream(config: StreamConfig) -> None:
    """Raise `BadArgument` if the configuration of a stream does not allow fast ingest."""
    if not config.allow_batched:
        raise BadArgument(
            f"{config.name} does not allow fast ingest: set allow_batched, or use publish_many"
        )
    if config.no_ack:
        raise BadArgument(f"{config.name} has no_ack, so it sends no replies: use publish_many")


def check_headers(block: bytes) -> None:
    """Raise `BadArgument` for headers that a message of a fast batch must not have."""
    if b"\r\nNats-Expected-Last-Msg-Id:" in block:
        raise BadArgument(
            "expected_last_msg_id cannot be used with fast ingest: if the expectation fails, the"
            " server still counts the message as handled; use publish"
        )
    if b"\r\nNats-Batch-" in block:
        raise BadArgument("headers Nats-Batch-… belong to atomic batches, not to fast ingest")


def interval_for(window: int) -> int:
    """Return the interval to request so that at most `window` messages are in flight."""
    return max(1, min(INGEST_INTERVAL, window // INGEST_INTERVALS))


class FastBatch:
    """The state of one batch: the numbers of its messages, and the replies to them.

    The owner increments `sent` for each message, and calls `take` for each reply.
    """

    def __init__(self, inbox: bytes, name: str, stream: str, interval: int, gaps: Gaps) -> None:
        self.id: Final = name
        self.stream: Final = stream
        self._prefix: Final = b"%b.%b.%d.%b." % (inbox, name.encode(), interval, gaps.encode())
        self._fails: Final = gaps == "fail"
        self.subject = b""
        """The subject of the first message. Pings and the commit are sent to this subject."""
        self.sent = 0
        """The number of the last message that was sent, 0 before the first."""
        self.passed = 0
        """The number up to which the server has handled messages."""
        self.interval = 0
        """The server's interval of acknowledgements in messages; 0 before its first reply."""
        self.ack: PubAck | None = None
        """The acknowledgement of the commit, None before it arrives."""
        self.trouble: TwinstreamError | None = None
        """Why the batch ended without an acknowledgement, None if it did not."""
        self.vanished: TwinstreamError | None = None
        """The error with which the server reports that it does not know the batch; else None.

        The final reply to the batch may still be in flight, so the batch is not over yet.
        """
        self.stray = b""
        """The first bytes of the last unexpected reply, for example from another client."""
        self.refused: Final[dict[int, TwinstreamError]] = {}
        self._lost: Final[list[range]] = []

    # ---- sending

    @property
    def has_room(self) -> bool:
        """Whether another message may be sent now. Before the first reply, only one may be sent."""
        return self.sent == 0 or self.sent < self.passed + INGEST_INTERVALS * self.interval

    @property
    def is_over(self) -> bool:
        """Whether the batch has ended."""
        return self.ack is not None or self.trouble is not None

    @property
    def is_broken(self) -> bool:
        """Whether the batch cannot continue, although its end was not reported yet."""
        return self.vanished is not None or (self._fails and bool(self.refused))

    def next_reply(self) -> bytes:
        """Return the reply subject of the next message."""
        operation = _APPEND if self.sent else _START
        return b"%b%d.%d.$FI" % (self._prefix, self.sent + 1, operation)

    def ping_reply(self) -> bytes:
        """Return the reply subject that requests the last acknowledgement again."""
        # A ping repeats the number of the last message, so a lost ping leaves no gap.
        return b"%b%d.%d.$FI" % (self._prefix, self.sent, _PING)

    def commit_reply(self) -> bytes:
        """Return the reply subject that ends the batch."""
        return b"%b%d.%d.$FI" % (self._prefix, self.sent + 1, _COMMIT)

    # ---- replies

    def fail(self, error: TwinstreamError) -> None:
        """End the batch without an acknowledgement, unless it has already ended."""
        if not self.is_over:
            self.trouble = error

    def take(self, frame: Frame) -> None:
        """Process a reply; replies to another batch are ignored."""
        subject, _, header_size, body = frame
        if not subject.startswith(self._prefix):
            return
        tokens = subject[len(self._prefix) :].split(b".")
        number, operation = natural(tokens[0]), natural(b"".join(tokens[1:2]))
        if number is None or operation is None:
            # Another client may publish anything to this inbox.
            self.stray = body[:80]
            return
        if is_unserved(frame):
            self._refuse(number, operation, NoResponders("no responders for the subject"))
            return
        try:
            members = read_object(body[header_size:-2])
        except ValueError:
            self.stray = body[:80]
            return
        if not self._note(number, operation, members):
            self.stray = body[:80]

    def _note(self, number: int, operation: int, members: dict[str, Any]) -> bool:
        """Process a decoded reply; return False if it has no known form."""
        error: object = members.get("error")
        refusal = api_error(cast("dict[str, object]", error)) if isinstance(error, dict) else None
        if error is not None and refusal is None:
            return False
        match members:
            case {"type": "ack", "seq": int(seq), "msgs": int(interval)}:
                self.passed = max(self.passed, seq)
                self.interval = max(1, interval)
            case {"type": "gap", "last_seq": int(first), "seq": int(end)}:
                # If the server received a number twice, the range is empty, and nothing was lost.
                self._lost.append(range(first, end))
            case {"type": "err", "seq": int(seq)} if refusal is not None:
                self.refused[seq] = refusal
            case _ if refusal is not None:
                self._refuse(number, operation, self._explained(refusal, members.get("stream")))
            case {
                "batch": self.id,
                "stream": str(stream),
                "seq": int(seq),
                "count": int(count),
            } if min(seq, count) >= 0:
                domain = members.get("domain")
                self.ack = twinstream.models.PubAck(
                    stream=stream, seq=seq, domain=domain, batch=self.id, count=count
                )
            case {"stream": str(stream), "seq": int(seq)}:
                # The server did not receive the reply subject of the batch. Something between
                # client and server has replaced it.
                text = (
                    f"stream {stream} stored the message as {seq}, outside of the batch: its reply"
                    " subject was replaced on the way to the server; use publish_many"
                )
                self._refuse(number, operation, InvalidResponse(text))
            case _:
                return False
        return True

    def _explained(self, error: JetStreamError, stream: object) -> TwinstreamError:
        if isinstance(stream, str) and stream != self.stream:
            return BadArgument(f"the subject is of stream {stream}, the batch of {self.stream}")
        return error

    def _refuse(self, number: int, operation: int, error: TwinstreamError) -> None:
        """Record the error that the server reports for an operation of the batch."""
        if operation in (_START, _APPEND):
            self.refused[number] = error
        if operation == _START:
            # If the server refuses the first message, there is no batch.
            self.fail(error)
        elif operation != _APPEND:
            # In a replicated stream, the server may send this reply before the final reply, for
            # which the replicas have to agree.
            self.vanished = error

    # ---- outcome of a message

    def fate(self, number: int) -> Fate:
        """Return the outcome of a message, as far as it is known."""
        handled = self.passed if self.ack is None else max(self.passed, self.ack.count or 0)
        refusal = self.refused.get(number)
        # Refusals are checked first, because the server counts some refused messages as handled.
        if refusal is not None:
            # With gaps "ok" the batch has continued, so a retry would be out of order.
            ended = self._fails or number > handled
            passes = is_transient(refusal, repeatable=False, batch=True)
            return Fate.AGAIN if ended and passes else Fate.REFUSED
        if not self._fails and any(number in lost for lost in self._lost):
            return Fate.LOST
        if number <= handled:
            return Fate.STORED if self._fails else Fate.PASSED
        return Fate.UNKNOWN if self.ack is None else Fate.AGAIN

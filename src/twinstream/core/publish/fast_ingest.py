"""Fast ingest: the numbers of a batch, and what the server's answers say of each message.

Theory of operation (ADR-50, server 2.14). A message of a batch carries nothing but a reply subject
``<inbox>.<batch>.<interval>.<gaps>.<number>.<operation>.$FI``, and is stored as it arrives. The
first one opens the batch; its answer tells the interval, at most the one asked for, in which the
server acknowledges from then on: "handled up to number n". It may change with each such answer.
They carry no sequence of the stream, and a ping only repeats the last one, so the messages behind
it are told by the end alone: a commit, answered with a publish acknowledgement whose `count` is
the last number handled.

With gaps "fail" a number that is missing, or a message that the server refuses, ends the batch
there, and everything up to the end is stored. With "ok" the batch goes on; then "handled" does not
say stored, since the notice of a gap is sent once and may get lost. A batch that was idle for ten
seconds is dropped without a word, and its number is unknown from then on (10208).
"""

from __future__ import annotations

from enum import Enum, auto
from typing import TYPE_CHECKING, Any, Final, Literal, cast

from attrs import frozen

import twinstream.models
from twinstream.core.wire.response import read_object
from twinstream.core.base.digits import natural
from twinstream.errors import (
    BadAnswer,
    BadArgument,
    JetStreamError,
    NoResponders,
    TwinstreamError,
    api_error,
)
from twinstream.core.wire.protocol import Frame
from twinstream.core.publish.retry import passes
from twinstream.core.wire.status import is_unserved

if TYPE_CHECKING:
    from twinstream.models import PubAck, StreamConfig

__all__ = [
    "INTERVALS",
    "MAX_INTERVAL",
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
"""What a missing number, or a refused message, does to its batch: end it, or nothing."""

MAX_INTERVAL: Final = 500
"""The longest interval that a server of 2.14 or 2.15 chooses, whatever is asked for."""
INTERVALS: Final = 2
"""Intervals under way: the server works on one while the next is on its way (ADR-50)."""

_START: Final = 0
_APPEND: Final = 1
_COMMIT: Final = 3
_PING: Final = 4

_UNKNOWN_BATCH: Final = 10208
_TOO_MANY_BATCHES: Final = 10211


@frozen
class Ingested:
    """A message that fast ingest has put into a stream.

    The server tells no sequence for it, and not whether it was a duplicate of one stored before.
    """

    stream: str
    batch: str
    number: int
    """Its place in the batch, from 1 up."""
    is_certain: bool = True
    """False with `gaps="ok"`: the server is past it, and no word came that it was lost."""


class Fate(Enum):
    """What is known of a message of a batch."""

    STORED = auto()
    """It is in the stream, or a duplicate of one that is."""
    PASSED = auto()
    """The server is past it, where gaps are allowed."""
    REFUSED = auto()
    """Its error says why; sending it again would not help."""
    LOST = auto()
    """Not stored: it never arrived, where gaps are allowed."""
    AGAIN = auto()
    """Not stored, and may be sent again."""
    UNKNOWN = auto()
    """Nothing is known of it (yet)."""


def check_gaps(gaps: Gaps) -> Gaps:
    """Return the policy for gaps; raises `BadArgument` for what is none."""
    if gaps not in ("fail", "ok"):
        raise BadArgument(f"gaps must be 'fail' or 'ok', got {gaps!r}")
    return gaps


def check_stream(config: StreamConfig) -> None:
    """Raise `BadArgument` for a stream that fast ingest cannot use."""
    if not config.allow_batched:
        raise BadArgument(
            f"{config.name} does not allow fast ingest: set allow_batched, or use publish_many"
        )
    if config.no_ack:
        raise BadArgument(f"{config.name} has no_ack, so it would answer nothing: use publish_many")


def check_headers(block: bytes) -> None:
    """Raise `BadArgument` for headers that a message of a fast batch cannot have."""
    if b"\r\nNats-Expected-Last-Msg-Id:" in block:
        raise BadArgument(
            "expected_last_msg_id cannot be used with fast ingest: where it does not hold, the"
            " server (2.15.1) counts the message as handled all the same; use publish"
        )
    if b"\r\nNats-Batch-" in block:
        raise BadArgument("headers Nats-Batch-… belong to atomic batches, not to fast ingest")


def interval_for(window: int) -> int:
    """Return the interval to ask for so that at most `window` messages are under way."""
    return max(1, min(MAX_INTERVAL, window // INTERVALS))


class FastBatch:
    """Numbers the messages of one batch and reads the answers to it.

    The owner counts `sent`; whoever receives calls `take`.
    """

    def __init__(self, inbox: bytes, name: str, stream: str, interval: int, gaps: Gaps) -> None:
        self.id: Final = name
        self.stream: Final = stream
        self._prefix: Final = b"%b.%b.%d.%b." % (inbox, name.encode(), interval, gaps.encode())
        self._fails: Final = gaps == "fail"
        self.sent = 0
        """The number of the last message."""
        self.passed = 0
        """The number up to which the server has handled messages."""
        self.interval = 0
        """How often it acknowledges; 0 until it has answered the first message."""
        self.ack: PubAck | None = None
        """The acknowledgement at the end."""
        self.trouble: TwinstreamError | None = None
        """Why it ended without one."""
        self.vanished: TwinstreamError | None = None
        """The server's word that it does not know the batch; its end may be on the way still."""
        self.stray = b""
        """What somebody else answered."""
        self.refused: Final[dict[int, TwinstreamError]] = {}
        self._lost: Final[list[range]] = []

    # ---- sending

    @property
    def has_room(self) -> bool:
        """Tell whether another message may be sent now."""
        return self.sent == 0 or self.sent < self.passed + INTERVALS * self.interval

    @property
    def is_over(self) -> bool:
        """Tell whether the batch has ended."""
        return self.ack is not None or self.trouble is not None

    @property
    def is_broken(self) -> bool:
        """Tell whether the batch cannot go on, though its end is not here."""
        return self.vanished is not None or (self._fails and bool(self.refused))

    def next_reply(self) -> bytes:
        """Return the reply subject of the next message."""
        operation = _APPEND if self.sent else _START
        return b"%b%d.%d.$FI" % (self._prefix, self.sent + 1, operation)

    def ping_reply(self) -> bytes:
        """Return the reply subject that asks for the last acknowledgement again."""
        # Not a number of its own: a ping that gets lost must not look like a gap.
        return b"%b%d.%d.$FI" % (self._prefix, self.sent, _PING)

    def commit_reply(self) -> bytes:
        """Return the reply subject that ends the batch."""
        return b"%b%d.%d.$FI" % (self._prefix, self.sent + 1, _COMMIT)

    # ---- answers

    def fail(self, error: TwinstreamError) -> None:
        """End the batch without an acknowledgement, unless it has ended."""
        if not self.is_over:
            self.trouble = error

    def take(self, frame: Frame) -> None:
        """Read an answer; answers to another batch change nothing."""
        subject, _, header_size, body = frame
        if not subject.startswith(self._prefix):
            return
        tokens = subject[len(self._prefix) :].split(b".")
        number, operation = natural(tokens[0]), natural(b"".join(tokens[1:2]))
        if number is None or operation is None:
            # Another client may send whatever it likes to this inbox.
            self.stray = body[:80]
            return
        if is_unserved(frame):
            self._refuse(number, operation, NoResponders("nobody serves the subject"))
            return
        try:
            members = read_object(body[header_size:-2])
        except ValueError:
            self.stray = body[:80]
            return
        if not self._note(number, operation, members):
            self.stray = body[:80]

    def _note(self, number: int, operation: int, members: dict[str, Any]) -> bool:
        """Take in what the server says of a batch or message; False if that is nothing known."""
        error: object = members.get("error")
        refusal = api_error(cast("dict[str, object]", error)) if isinstance(error, dict) else None
        if error is not None and refusal is None:
            return False
        match members:
            case {"type": "ack", "seq": int(seq), "msgs": int(interval)}:
                self.passed = max(self.passed, seq)
                self.interval = max(1, interval)
            case {"type": "gap", "last_seq": int(first), "seq": int(end)}:
                # It ends before it begins when a number came twice: nothing was lost then.
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
                # Something that forwards messages may have given it another reply subject.
                text = (
                    f"stream {stream} stored the message as {seq}, outside of the batch: the server"
                    " saw no batch in its reply subject; use publish_many"
                )
                self._refuse(number, operation, BadAnswer(text))
            case _:
                return False
        return True

    def _explained(self, error: JetStreamError, stream: object) -> TwinstreamError:
        if isinstance(stream, str) and stream != self.stream:
            return BadArgument(f"stream {stream} has the subject, the batch is for {self.stream}")
        return error

    def _refuse(self, number: int, operation: int, error: TwinstreamError) -> None:
        if operation in (_START, _APPEND):
            self.refused[number] = error
        if operation == _START:
            # Without its first message there is no batch.
            self.fail(error)
        elif operation != _APPEND:
            # With replicas the end is told when it is agreed on, and this at once.
            self.vanished = error

    # ---- what became of a message

    def fate(self, number: int) -> Fate:
        """Return what is known of a message."""
        handled = self.passed if self.ack is None else max(self.passed, self.ack.count or 0)
        refusal = self.refused.get(number)
        # First: 2.15 goes on behind some refusals as if the message had been handled.
        if refusal is not None:
            # Where gaps are allowed the batch went on without it, and it would come out of order.
            ended = self._fails or number > handled
            return Fate.AGAIN if ended and _passes(refusal) else Fate.REFUSED
        if not self._fails and any(number in lost for lost in self._lost):
            return Fate.LOST
        if number <= handled:
            return Fate.STORED if self._fails else Fate.PASSED
        return Fate.UNKNOWN if self.ack is None else Fate.AGAIN


def _passes(error: TwinstreamError) -> bool:
    """Tell whether a refusal was of the moment, or of the batch, rather than of the message."""
    if isinstance(error, JetStreamError):
        return error.err_code in (_UNKNOWN_BATCH, _TOO_MANY_BATCHES) or passes(error)
    return isinstance(error, NoResponders)

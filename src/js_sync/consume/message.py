# Generated from src/js_async/consume/message.py by codegen/twin.py. Edit that file instead.
"""A message delivered by a JetStream consumer, and the words that acknowledge it."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any, Final, cast

from twinstream.core.consume.metadata import Metadata, parse_ack_reply
from twinstream.core.consume.acks import ACK, ACK_COMMAND, IN_PROGRESS, nak, term
from twinstream.core.deadline import Deadline, Seconds, monotonic
from twinstream.errors import (
    AlreadyAcknowledged,
    BadAnswer,
    ConnectionLost,
    NotAcknowledgeable,
    RequestTimeout,
)
from twinstream.core.base.nats_py_names import hint_attributes
from twinstream.core.wire.protocol import Frame
from js_sync.consume.delivery import Delivery, ahead
from js_sync.client.core_message import CoreMessage

__all__ = ["Message", "message_of", "messages_of"]


@hint_attributes
class Message(CoreMessage):
    """One delivery of a stored message.

    Acknowledging is one short publish that the server does not answer; `double_ack` waits for its
    word, and so do the others with `confirm=True`. A message that is acknowledged refuses a second
    word with `AlreadyAcknowledged`.
    """

    __slots__ = ("_delivery", "_done", "_metadata", "_returned", "_told_at")

    # None in Python: see `message_of`.
    __init__ = object.__init__  # pyright: ignore[reportAssignmentType]

    _delivery: Delivery
    _done: bool

    @property
    def metadata(self) -> Metadata:
        """Stream, consumer, sequences, time and deliveries of the message (ADR-15).

        Raises `NotAcknowledgeable` where an account import rewrote the reply subject.
        """
        try:
            return self._metadata
        except AttributeError:
            found = parse_ack_reply(self._frame[1])
        if found is None:
            raise NotAcknowledgeable(f"{self.subject}: the reply subject is not JetStream's")
        self._metadata: Metadata = found
        return found

    @property
    def is_acknowledged(self) -> bool:
        """Tell whether a final word was sent: ack, nak or term."""
        return self._done

    @property
    def _is_returned(self) -> bool:
        """Tell whether another delivery was asked for with `nak`, sent or about to be."""
        # Not set before that, for most are acknowledged.
        return getattr(self, "_returned", False)

    @property
    def time_left(self) -> float | None:
        """Seconds until the server delivers the message anew, unless it is told something.

        Negative when that is past; None where the consumer's ack_wait is not known. Counted from
        the arrival at this client, so the server's own clock runs a little ahead. Where nobody
        looked when it arrived, as the program was at work, it counts from the last look.
        """
        wait = self._delivery.ack_wait
        if wait is None:
            return None
        told_at = getattr(self, "_told_at", 0.0)
        return max(told_at, self._delivery.told_at) + wait - monotonic()

    @property
    def is_late(self) -> bool:
        """Tell whether the server may have given up on this delivery, to make another.

        So it is 0.05 s before `time_left` is over, or a twentieth of the consumer's `ack_wait` if
        that is less: the server's own clock runs ahead.
        """
        left, wait = self.time_left, self._delivery.ack_wait
        return left is not None and wait is not None and left <= ahead(wait)

    def ack(self) -> None:
        """Say that the message is done."""
        reply = self._frame[1]
        if self._done or not reply:
            self._check_open()
        # Written out, not through _finish: most messages end here.
        transport = self._delivery.transport
        if not transport.try_write(ACK_COMMAND % reply):
            transport.send(reply, b"", b"", ACK)
        self._done = True

    def nak(self, delay: Seconds | None = None, *, confirm: bool = False) -> None:
        """Ask for another delivery, `delay` seconds from now; None is at once.

        A NAK without a delay ignores the consumer's backoff. `confirm` waits for the server's word,
        and raises what `double_ack` does.
        """
        word = nak(delay)
        self._check_open()
        # Before it is sent: the delivery that it brings may be here before that returns.
        self._returned = True
        self._finish(word, confirm)

    def term(self, reason: str | None = None, *, confirm: bool = False) -> None:
        """Say that the message must not come again; `reason` goes into the advisory (2.10.4).

        There it is one line, whatever it holds. `confirm` waits for the server's word, and raises
        what `double_ack` does: where a lost word would bring the message once more.
        """
        self._finish(term(reason), confirm)

    def in_progress(self, *, confirm: bool = False) -> None:
        """Say that work goes on: the consumer's ack_wait starts anew.

        `confirm` waits for the server's word, and raises what `double_ack` does.
        """
        self._check_open()
        began = monotonic()
        self._say(IN_PROGRESS, confirm)
        # The server may have heard a confirmed word as soon as the call began.
        self._told_at: float = began if confirm else monotonic()

    def double_ack(self, timeout: Seconds | None = None) -> bool:
        """Acknowledge, and return when the server confirms it within `timeout` seconds.

        The default is the timeout of the JetStream context, for the others with `confirm=True` too.
        True when the confirmation is sure to count. False when it came so late that the server
        may have delivered the message anew before: it confirms such an acknowledgement too.

        Raises `RequestTimeout`, `NoResponders` (no consumer leader) or `ConnectionLost`; the
        message may be acknowledged again then.
        """
        self._check_open()
        return self._confirmed(self._ask(ACK, timeout))

    def _ask(self, word: bytes, timeout: Seconds | None = None) -> Frame:
        transport = self._delivery.transport
        deadline = Deadline.after(self._delivery.timeout if timeout is None else timeout)
        try:
            frame = transport.ask(self._frame[1].decode(), b"", word, deadline)
        except (RequestTimeout, ConnectionLost) as error:
            raise type(error)(
                f"{self.subject}: the acknowledgement is not confirmed, it may count or not; unless"
                " it is repeated, the message may come again after the consumer's ack_wait"
                f" ({error})"
            ) from error
        if not _confirms(frame):
            raise BadAnswer(f"{self.subject}: not a confirmation: {frame[3][:80]!r}")
        return frame

    def _confirmed(self, answer: Frame | None) -> bool:
        """Take the answer to an acknowledgement; tell whether it is sure to count."""
        if answer is None or not _confirms(answer):
            return False
        late = self.is_late
        self._done = True
        return not late

    def _check_open(self) -> None:
        """Raise `AcknowledgementError` where no word may be sent any more."""
        if self._done:
            raise AlreadyAcknowledged(f"{self.subject}: this delivery is acknowledged already")
        if not self._frame[1]:
            raise NotAcknowledgeable(f"{self.subject}: the message has no reply subject")

    def _finish(self, word: bytes, confirm: bool) -> None:
        self._check_open()
        self._say(word, confirm)
        self._done = True

    def _say(self, word: bytes, confirm: bool) -> None:
        if confirm:
            self._ask(word)
        else:
            self._delivery.transport.send(self._frame[1], b"", b"", word)

    @property
    def _reply_bytes(self) -> bytes:
        """Where acknowledgements go, as it came."""
        return self._frame[1]

    def _finished(self) -> None:
        """Note that a final word was sent in another way."""
        self._done = True


def _confirms(answer: Frame) -> bool:
    """Tell a confirmation, which is an empty message, from a status on the way back."""
    return len(answer[3]) == 2


_bare: Final = cast("Callable[[], Any]", Message)


def message_of(frame: Frame, delivery: Delivery) -> Message:
    """Return the message that a frame is.

    Not by a constructor, which would take half as long again (Python 3.11 and 3.13), and with
    nothing that can be made when it is asked for: this runs once a message, on the way that
    everything else waits for.
    """
    message = _bare()
    message._frame = frame
    message._delivery = delivery
    message._done = False
    return message  # type: ignore[no-any-return]


def messages_of(frames: Iterable[Frame], deliveries: Iterable[Delivery]) -> list[Message]:
    """Return the messages that frames are, each of its delivery."""
    return [
        message_of(frame, delivery) for frame, delivery in zip(frames, deliveries, strict=False)
    ]

"""A message delivered by a JetStream consumer, and its acknowledgements."""

from __future__ import annotations

from collections.abc import Iterable

from js_async.client.core_message import CoreMessage
from js_async.consume.delivery import Delivery, ahead
from twinstream.core.base.nats_py_names import hint_attributes
from twinstream.core.consume.acks import ACK, ACK_COMMAND, IN_PROGRESS, nak, term
from twinstream.core.consume.metadata import Metadata, Position, parse_ack_reply
from twinstream.core.deadline import Deadline, Seconds, monotonic
from twinstream.core.error_details.transient import LOST_RESPONSE
from twinstream.core.wire.protocol import Frame
from twinstream.errors import (
    AlreadyAcknowledged,
    BadAnswer,
    NotAcknowledgeable,
)

__all__ = ["Message", "messages_of"]


@hint_attributes
class Message(CoreMessage):
    """One delivery of a stored message.

    An acknowledgement is one short publish without a response. `double_ack`, and the other methods
    with `confirm=True`, wait for the server's confirmation. A message can be acknowledged once; the
    next attempt raises `AlreadyAcknowledged`.
    """

    __slots__ = ("_delivery", "_done", "_metadata", "_returned", "_told_at")

    def __init__(self, frame: Frame, delivery: Delivery) -> None:
        # Runs for each message: it computes nothing that can be computed on access.
        self._frame = frame
        self._delivery = delivery
        self._done = False

    @property
    def metadata(self) -> Metadata:
        """Stream, consumer, sequences, time and delivery count of the message (ADR-15).

        Raises `NotAcknowledgeable` if an account import rewrote the reply subject.
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
    def _position(self) -> Position:
        """The numbers of the metadata."""
        found = self.metadata
        return found.stream_seq, found.consumer_seq, found.timestamp_ns, found.num_pending

    @property
    def is_acknowledged(self) -> bool:
        """Whether a final acknowledgement was sent: ack, nak or term."""
        return self._done

    @property
    def _is_returned(self) -> bool:
        """Whether `nak` was called; its request may not have been sent yet."""
        # Set by `nak` only, as most messages are acknowledged.
        return getattr(self, "_returned", False)

    @property
    def time_left(self) -> float | None:
        """Seconds until the server redelivers the message, unless it is acknowledged.

        Negative if that time has passed; None if the consumer's ack_wait is unknown. Counted from
        the arrival at this client, so the server's clock is slightly ahead. If the client did not
        read when the message arrived, because the program was busy, it counts from the last read.
        """
        wait = self._delivery.ack_wait
        if wait is None:
            return None
        told_at = getattr(self, "_told_at", 0.0)
        return max(told_at, self._delivery.told_at) + wait - monotonic()

    @property
    def is_late(self) -> bool:
        """Whether ack_wait may be over on the server, so that it redelivers the message.

        True from 0.05 s before the end of `time_left`, or from a twentieth of the consumer's
        `ack_wait` if that is less, as the server's clock is ahead.
        """
        left, wait = self.time_left, self._delivery.ack_wait
        return left is not None and wait is not None and left <= ahead(wait)

    async def ack(self) -> None:
        """Acknowledge the message as processed."""
        reply = self._frame[1]
        if self._done or not reply:
            self._check_open()
        # Inlined instead of `_finish`: the most frequent call.
        transport = self._delivery.transport
        if not transport.try_write(ACK_COMMAND % reply):
            await transport.send(reply, b"", b"", ACK)
        self._done = True

    async def nak(self, delay: Seconds | None = None, *, confirm: bool = False) -> None:
        """Request redelivery after `delay` seconds; None is at once.

        A NAK without a delay ignores the consumer's backoff. `confirm` waits for the server's
        confirmation, and raises the errors of `double_ack`.
        """
        word = nak(delay)
        self._check_open()
        # Set before the send: the redelivery may arrive before the send returns.
        self._returned = True
        await self._finish(word, confirm)

    async def term(self, reason: str | None = None, *, confirm: bool = False) -> None:
        """Stop redelivery of the message; `reason` appears in the advisory (server 2.10.4).

        The reason is reduced to one line. `confirm` waits for the server's confirmation, and raises
        the errors of `double_ack`; use it if a lost TERM, and so one more delivery, would matter.
        """
        await self._finish(term(reason), confirm)

    async def in_progress(self, *, confirm: bool = False) -> None:
        """Report that work continues: the consumer's ack_wait starts over.

        `confirm` waits for the server's confirmation, and raises the errors of `double_ack`.
        """
        self._check_open()
        began = monotonic()
        await self._say(IN_PROGRESS, confirm)
        # The server may have received a confirmed request as early as the call began.
        self._told_at: float = began if confirm else monotonic()

    async def double_ack(self, timeout: Seconds | None = None) -> bool:
        """Acknowledge and wait until the server confirms it, at most `timeout` seconds.

        The default timeout is that of the JetStream context, also for the other methods with
        `confirm=True`. Returns True if the acknowledgement certainly counts. Returns False if the
        confirmation came so late that the server may have redelivered the message before; servers
        confirm late acknowledgements, too.

        Raises `RequestTimeout` or `ConnectionLost`, and `NoResponders` if the consumer has no
        leader. The message may be acknowledged again after these errors.
        """
        self._check_open()
        return self._confirmed(await self._ask(ACK, timeout))

    async def _ask(self, word: bytes, timeout: Seconds | None = None) -> Frame:
        transport = self._delivery.transport
        deadline = Deadline.after(self._delivery.timeout if timeout is None else timeout)
        try:
            frame = await transport.ask(self._frame[1].decode(), b"", word, deadline)
        except LOST_RESPONSE as error:
            raise type(error)(
                f"{self.subject}: the acknowledgement is not confirmed and may or may not count;"
                " unless it is repeated, the message may be redelivered after the consumer's"
                f" ack_wait ({error})"
            ) from error
        if not _confirms(frame):
            raise BadAnswer(f"{self.subject}: not a confirmation: {frame[3][:80]!r}")
        return frame

    def _confirmed(self, answer: Frame | None) -> bool:
        """Process the response to an acknowledgement; return whether it certainly counts."""
        if answer is None or not _confirms(answer):
            return False
        late = self.is_late
        self._done = True
        return not late

    def _check_open(self) -> None:
        """Raise `AcknowledgementError` if the message cannot be acknowledged any more."""
        if self._done:
            raise AlreadyAcknowledged(f"{self.subject}: this delivery is acknowledged already")
        if not self._frame[1]:
            raise NotAcknowledgeable(f"{self.subject}: the message has no reply subject")

    async def _finish(self, word: bytes, confirm: bool) -> None:
        self._check_open()
        await self._say(word, confirm)
        self._done = True

    async def _say(self, word: bytes, confirm: bool) -> None:
        if confirm:
            await self._ask(word)
        else:
            await self._delivery.transport.send(self._frame[1], b"", b"", word)

    @property
    def _reply_bytes(self) -> bytes:
        """The raw reply subject, to which acknowledgements go."""
        return self._frame[1]

    def _finished(self) -> None:
        """Record that a final acknowledgement was sent by other means."""
        self._done = True


def _confirms(answer: Frame) -> bool:
    """Return whether a frame is a confirmation, that is, an empty message without a status."""
    return len(answer[3]) == 2


def messages_of(frames: Iterable[Frame], deliveries: Iterable[Delivery]) -> list[Message]:
    """Return the messages of frames, each with its delivery."""
    return [Message(frame, delivery) for frame, delivery in zip(frames, deliveries, strict=False)]

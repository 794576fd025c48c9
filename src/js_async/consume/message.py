"""A message that a JetStream consumer delivered, and its acknowledgements."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING, Any, Final, Generic, TypeVar, cast

from js_async.client.core_message import CoreMessage
from js_async.consume.delivery import Delivery, ahead
from twinstream.core.arguments.nats_py_names import hint_attributes
from twinstream.core.consume.acks import ACK, ACK_COMMAND, IN_PROGRESS, kind_of, nak, term
from twinstream.core.consume.metadata import Metadata, parse_ack_reply
from twinstream.core.deadline import Deadline, Seconds, monotonic
from twinstream.core.wire.payload import P, Unread
from twinstream.core.wire.protocol import Frame
from twinstream.errors import AlreadyAcknowledged, InvalidResponse, NotAcknowledgeable
from twinstream.errors.transient import LOST_RESPONSE
from twinstream.models.times.timestamp import Timestamp

if TYPE_CHECKING:
    from twinstream.core.payloads.payloads import Delivered
    from twinstream.errors.payload import PayloadError

__all__ = [
    "Message",
    "TypedMessage",
    "check_open",
    "confirm",
    "delivery_of",
    "frame_of",
    "is_returned",
    "late_at",
    "message_of",
    "messages_of",
    "with_subject",
]

M = TypeVar("M", bound="Message[Any]")

# The names of acknowledgements for observers, where they differ from their kind.
_CALLS: Final = {"progress": "in_progress"}


@hint_attributes
class Message(CoreMessage, Generic[P]):
    """One delivery of a stored message.

    `Message[Order]` has a `payload` of type `Order`; see `Consumer.typed`.

    An acknowledgement is one short publish without a response. `double_ack`, and the other methods
    with `confirm=True`, wait for the server's confirmation. After a final acknowledgement (ack, nak
    or term), all methods that acknowledge raise `AlreadyAcknowledged`.
    """

    __slots__ = ("_delivery", "_done", "_metadata", "_reported_at", "_returned")

    # Set in a `GroupMessage` that the server may have copied again into the stream of its group.
    _place: Any = None

    def __init__(self, frame: Frame, delivery: Delivery) -> None:
        # This runs for each message, so everything else is computed on access.
        self._frame = frame
        self._delivery = delivery
        self._done = False

    @property
    def payload(self) -> P:
        """The value that a typed handle decodes from `data`; otherwise `data` itself.

        It is decoded at its first use. Raises `PayloadError` if it does not fit the type.
        """
        payloads = self._delivery.payloads
        return cast("P", self.data if payloads is None else payloads.payload(_typed(self)))

    @property
    def payload_error(self) -> PayloadError | None:
        """The error that `payload` raises, or None if it raises none."""
        payloads = self._delivery.payloads
        return None if payloads is None else payloads.error(_typed(self))

    @property
    def metadata(self) -> Metadata:
        """The stream, consumer, sequences, time and delivery count of the message (ADR-15).

        Raises `NotAcknowledgeable` if the reply subject is not JetStream's, for example because an
        account import rewrote it.
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
    def seq(self) -> int:
        """The sequence of the message in its stream, the same as `metadata.stream_seq`."""
        return self.metadata.stream_seq

    @property
    def time(self) -> Timestamp:
        """The time at which the stream stored the message, in nanoseconds."""
        return Timestamp.from_ns(self.metadata.timestamp_ns)

    @property
    def num_delivered(self) -> int:
        """The number of deliveries of the message including this one; above 1 if redelivered."""
        return self.metadata.num_delivered

    @property
    def is_acknowledged(self) -> bool:
        """Whether a final acknowledgement (ack, nak or term) was sent.

        If the caller requested a confirmation, this is True only after its arrival.
        """
        return self._done

    @property
    def time_left(self) -> float | None:
        """The number of seconds until ack_wait is over and the server may redeliver the message.

        Negative if ack_wait is over. None if the client does not know the consumer's ack_wait, or
        if the consumer requires no acknowledgements. The client counts from its last progress
        report, or else from the arrival of the message. The server counts from the sending of the
        message, which is slightly earlier. If a busy program delayed the reader, the client counts
        from when it read the message.
        """
        wait = self._delivery.ack_wait
        if wait is None:
            return None
        reported_at = getattr(self, "_reported_at", 0.0)
        return max(reported_at, self._delivery.reported_at) + wait - monotonic()

    @property
    def is_late(self) -> bool:
        """Whether ack_wait may be over on the server. The server may then redeliver the message.

        True if `time_left` is at most 0.05 s. For an `ack_wait` below 1 s, the margin is a
        twentieth of the `ack_wait` instead. The margin allows for the transit time of the message.
        False if `time_left` is None.
        """
        remaining, wait = self.time_left, self._delivery.ack_wait
        return remaining is not None and wait is not None and remaining <= ahead(wait)

    async def ack(self) -> None:
        """Acknowledge the message as processed."""
        reply = self._frame[1]
        if self._done or not reply:
            check_open(self)
        # The body of `_finish`, inlined because this is the most frequent call.
        transport = self._delivery.transport
        if transport.observers is not None:
            await self._finish(ACK, False, None)
            return
        if not transport.write_command(ACK_COMMAND % reply):
            await transport.send(reply, b"", b"", ACK)
        self._done = True

    async def nak(
        self,
        delay: Seconds | None = None,
        *,
        confirm: bool = False,
        timeout: Seconds | None = None,
    ) -> None:
        """Request that the server redelivers the message.

        A NAK without a delay ignores the consumer's backoff.

        Args:
            delay: Seconds until the redelivery; None redelivers at once.
            confirm: Wait for the server's confirmation. This may raise `RequestTimeout` or another
                error, as in `double_ack`.
            timeout: Seconds to wait for the confirmation; the default is that of the JetStream
                context.
        """
        word = nak(delay)
        check_open(self)
        # Set before the send: the redelivery may arrive before the send returns.
        self._returned = True
        await self._finish(word, confirm, timeout)

    async def term(
        self,
        reason: str | None = None,
        *,
        confirm: bool = False,
        timeout: Seconds | None = None,
    ) -> None:
        """Request that the server never redelivers the message.

        Args:
            reason: A text for the server's advisory (server 2.10.4), reduced to one line.
            confirm: Wait for the server's confirmation. This may raise `RequestTimeout` or another
                error, as in `double_ack`. Use it if one more delivery, after a lost TERM, would do
                harm.
            timeout: Seconds to wait for the confirmation; the default is that of the JetStream
                context.
        """
        await self._finish(term(reason), confirm, timeout)

    async def in_progress(self, *, confirm: bool = False, timeout: Seconds | None = None) -> None:
        """Report that the program still processes the message. The server restarts its ack_wait.

        Args:
            confirm: Wait for the server's confirmation. This may raise `RequestTimeout` or another
                error, as in `double_ack`.
            timeout: Seconds to wait for the confirmation; the default is that of the JetStream
                context.
        """
        check_open(self)
        began = monotonic()
        await self._send(IN_PROGRESS, confirm, timeout)
        # The server restarts ack_wait when it receives the report. If the report was confirmed, the
        # server may have received it soon after the call began, so count from then.
        self._reported_at: float = began if confirm else monotonic()

    async def double_ack(self, *, timeout: Seconds | None = None) -> bool:
        """Acknowledge the message and wait for the server's confirmation.

        Return True if the acknowledgement certainly counts. Return False if the confirmation came
        after ack_wait: the server confirms late acknowledgements, too, but it may have redelivered
        the message before. After an error, the message may be acknowledged again.

        Args:
            timeout: Seconds to wait; the default is that of the JetStream context.

        Raises:
            RequestTimeout: No confirmation arrived in time.
            ConnectionLost: The connection was lost before the confirmation arrived.
            NoResponders: The consumer does not exist, or has no leader.
            InvalidResponse: The response is not a confirmation.
        """
        check_open(self)
        observers = self._delivery.transport.observers
        if observers is None:
            return confirm(self, await self._ack_and_confirm(ACK, timeout))
        with observers.begin_of("ack", "double_ack", self):
            return confirm(self, await self._ack_and_confirm(ACK, timeout))

    async def _ack_and_confirm(self, word: bytes, timeout: Seconds | None = None) -> Frame:
        """Send an acknowledgement and return the server's confirmation.

        Raises `RequestTimeout` or `ConnectionLost` with the advice to repeat it if the confirmation
        is lost.
        """
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
            raise InvalidResponse(f"{self.subject}: not a confirmation: {frame[3][:80]!r}")
        return frame

    async def _finish(self, word: bytes, confirm: bool, timeout: Seconds | None) -> None:
        check_open(self)
        await self._send(word, confirm, timeout)
        self._done = True

    async def _send(self, word: bytes, confirm: bool, timeout: Seconds | None) -> None:
        observers = self._delivery.transport.observers
        if observers is None:
            await self._settle(word, confirm, timeout)
            return
        kind = kind_of(word)
        with observers.begin_of(kind, _CALLS.get(kind, kind), self):
            await self._settle(word, confirm, timeout)

    async def _settle(self, word: bytes, confirm: bool, timeout: Seconds | None) -> None:
        if confirm:
            await self._ack_and_confirm(word, timeout)
        else:
            await self._delivery.transport.send(self._frame[1], b"", b"", word)


class TypedMessage(Message[P]):
    """A `Message` of a typed handle, which keeps its decoded payload."""

    __slots__ = ("_payload",)

    def __init__(self, frame: Frame, delivery: Delivery) -> None:
        self._frame = frame
        self._delivery = delivery
        self._done = False
        self._payload: Any = Unread


def _typed(message: Message[Any]) -> Delivered:
    """Return a message with a place for its decoded payload."""
    return cast("Delivered", message)


# ---- for other modules of the package: what a message shows to the engines, but not to programs


def frame_of(message: Message[Any]) -> Frame:
    """Return the frame of a message, as it arrived."""
    return message._frame


def delivery_of(message: Message[Any]) -> Delivery:
    """Return the state that a message shares with those that arrived together with it."""
    return message._delivery


def late_at(message: Message[Any]) -> float:
    """Return the monotonic time from which the server may redeliver a message; see `Delivery`."""
    return message._delivery.late_at


def is_returned(message: Message[Any]) -> bool:
    """Return whether `nak` was called. The NAK may not have been sent yet."""
    # Only `nak` sets the attribute. Setting it in `__init__` would cost time for each message.
    return getattr(message, "_returned", False)


def check_open(message: Message[Any]) -> None:
    """Raise `AlreadyAcknowledged`, or `NotAcknowledgeable` if there is no reply subject."""
    if message._done:
        raise AlreadyAcknowledged(f"{message.subject}: this delivery is acknowledged already")
    if not message._frame[1]:
        raise NotAcknowledgeable(f"{message.subject}: the message has no reply subject")


def confirm(message: Message[Any], answer: Frame | None) -> bool:
    """Process the response to an acknowledgement; return whether it certainly counts.

    `answer` is None if no response arrived.
    """
    if answer is None or not _confirms(answer):
        return False
    late = message.is_late
    message._done = True
    return not late


def with_subject(message: Message[Any], subject: bytes, kind: type[M]) -> M:
    """Return the same delivery as an object of class `kind`, with another subject."""
    made = kind((subject, *message._frame[1:]), message._delivery)
    made._done = message._done
    if hasattr(message, "_reported_at"):
        made._reported_at = message._reported_at
    return made


def _confirms(answer: Frame) -> bool:
    """Return whether a frame is a confirmation: an empty message without headers."""
    return len(answer[3]) == 2


def messages_of(frames: Iterable[Frame], deliveries: Iterable[Delivery]) -> list[Message]:
    """Return a message for each pair of a frame and its delivery."""
    return [Message(frame, delivery) for frame, delivery in zip(frames, deliveries, strict=False)]


def message_of(frame: Frame, delivery: Delivery) -> Message[Any]:
    """Return the message of a frame, typed if the delivery is."""
    return (Message if delivery.payloads is None else TypedMessage)(frame, delivery)

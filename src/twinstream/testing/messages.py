"""Messages for the unit tests of handlers: without a server, with a payload of any type."""

from __future__ import annotations

from collections.abc import Mapping
from time import monotonic, time_ns
from typing import TYPE_CHECKING, Any, Final, TypedDict, TypeVar, cast

if TYPE_CHECKING:
    from typing import Unpack

    import js_async.groups
    import js_sync.groups
    from twinstream.codecs import Codec
    from twinstream.core.read.stream_message import StreamMessage
    from twinstream.models import Timestamp

__all__ = [
    "Delivered",
    "acknowledgements",
    "async_group_message",
    "async_message",
    "stream_message",
    "sync_group_message",
    "sync_message",
]

T = TypeVar("T")

# The usual ack_wait of servers, in seconds.
_ACK_WAIT: Final = 30.0
_CONFIRMED: Final = (b"", b"", 0, b"\r\n")


class _Acknowledgements:
    """The transport of a message in a test. It keeps what the message sends."""

    observers: Final = None

    def __init__(self) -> None:
        self.words: Final[list[str]] = []

    def write_command(self, command: bytes) -> bool:
        self.words.append(command.split(b"\r\n")[1].decode())
        return True


class _SyncTransport(_Acknowledgements):
    def send(self, reply: bytes, to: bytes, headers: bytes, word: bytes) -> None:
        self.words.append(word.decode())

    def ask(self, reply: str, headers: bytes, word: bytes, deadline: object) -> Any:
        self.words.append(word.decode())
        return _CONFIRMED


class _AsyncTransport(_Acknowledgements):
    async def send(self, reply: bytes, to: bytes, headers: bytes, word: bytes) -> None:
        self.words.append(word.decode())

    async def ask(self, reply: str, headers: bytes, word: bytes, deadline: object) -> Any:
        self.words.append(word.decode())
        return _CONFIRMED


class Delivered(TypedDict, total=False):
    """What else a received message has; without them, it is a usual first delivery."""

    subject: str
    """Subject of the message, by default `test`."""
    headers: Mapping[str, str] | None
    """Headers of the message. `Content-Type` is added as a publish adds it."""
    stream_name: str
    """Name of the stream, by default `TEST`."""
    consumer_name: str
    """Name of the consumer, by default `test`."""
    seq: int
    """Sequence in the stream, by default 1."""
    time: Timestamp | None
    """When the stream stored the message, by default now."""
    num_delivered: int
    """Number of deliveries including this one, by default 1."""
    num_pending: int
    """Number of messages that the consumer has not delivered yet, by default 0."""
    time_left: float | None
    """Seconds until the server may redeliver the message; negative if it may have done so. By
    default, the consumer's `ack_wait` is unknown."""
    domain: str
    """JetStream domain of the stream, by default none."""
    reply: str | None
    """Reply subject, by default that of a delivery. Another one has no `metadata`, as after the
    import of another account; a message with an empty one cannot be acknowledged."""


def sync_message(
    payload: T | bytes,
    model: type[T] | Codec[T] | None = None,
    **delivered: Unpack[Delivered],
) -> js_sync.Message[T]:
    """Return a `js_sync.Message` for the unit test of a handler.

    Args:
        payload: The value of the message, or the bytes of a payload, which need not fit.
        model: The type of the payload or its codec; by default the type of `payload`.
        delivered: Parts of the message and of its delivery, see `Delivered`.

    Raises:
        BadArgument: The value cannot be encoded.
    """
    from js_sync.consume.delivery import Delivery
    from js_sync.consume.message import message_of

    made = _Made(payload, model, delivered)
    delivery = Delivery(cast("Any", _SyncTransport()), *made.waiting, 5.0, made.payloads)
    return message_of(made.frame, delivery)


def async_message(
    payload: T | bytes,
    model: type[T] | Codec[T] | None = None,
    **delivered: Unpack[Delivered],
) -> js_async.Message[T]:
    """Return a `js_async.Message` for the unit test of a handler.

    The arguments are those of `sync_message`.

    Args:
        payload: Bytes, or a value of `model`.
        model: Type of the payload, or its codec; None means bytes.
        delivered: What the consumer says of the message, such as `seq` and `num_delivered`.
    """
    from js_async.consume.delivery import Delivery
    from js_async.consume.message import message_of

    made = _Made(payload, model, delivered)
    delivery = Delivery(cast("Any", _AsyncTransport()), *made.waiting, 5.0, made.payloads)
    return message_of(made.frame, delivery)


def sync_group_message(
    payload: T | bytes,
    model: type[T] | Codec[T] | None = None,
    *,
    partition: int = 0,
    **delivered: Unpack[Delivered],
) -> js_sync.groups.GroupMessage[T]:
    """Return a `js_sync.groups.GroupMessage` for the unit test of a handler of a group.

    The other arguments are those of `sync_message`; `subject` is that of the published message.

    Args:
        payload: The value of the message, or the bytes of a payload, which need not fit.
        model: The type of the payload or its codec; by default the type of `payload`.
        partition: Number of the partition, from 0.
        delivered: Parts of the message and of its delivery, see `Delivered`.

    Raises:
        BadArgument: The value cannot be encoded.
    """
    from js_sync.groups.message import group_message

    return group_message(sync_message(payload, model, **_stored_in(partition, delivered)))


def async_group_message(
    payload: T | bytes,
    model: type[T] | Codec[T] | None = None,
    *,
    partition: int = 0,
    **delivered: Unpack[Delivered],
) -> js_async.groups.GroupMessage[T]:
    """Return a `js_async.groups.GroupMessage` for the unit test of a handler of a group.

    The arguments are those of `sync_group_message`.

    Args:
        payload: Bytes, or a value of `model`.
        model: Type of the payload, or its codec; None means bytes.
        partition: Number of the partition.
        delivered: What the consumer says of the message, such as `seq` and `num_delivered`.
    """
    from js_async.groups.message import group_message

    return group_message(async_message(payload, model, **_stored_in(partition, delivered)))


def stream_message(
    payload: T | bytes,
    model: type[T] | Codec[T] | None = None,
    *,
    subject: str = "test",
    headers: Mapping[str, str] | None = None,
    stream_name: str = "TEST",
    seq: int = 1,
    time: Timestamp | None = None,
) -> StreamMessage[T]:
    """Return a `StreamMessage`, as `read`, `get_message` and `snapshot` of both twins do.

    Args:
        payload: The value of the message, or the bytes of a payload, which need not fit.
        model: The type of the payload or its codec; by default the type of `payload`.
        subject: Subject of the message.
        headers: Headers of the message. `Content-Type` is added as a publish adds it.
        stream_name: Name of the stream.
        seq: Sequence in the stream.
        time: When the stream stored the message, by default now.

    Raises:
        BadArgument: The value cannot be encoded.
    """
    from twinstream.core.read.stream_message import StreamMessage
    from twinstream.core.read.typed_message import typed_message
    from twinstream.records.headers import Headers

    payloads, data, block = _encoded(payload, model, subject, headers)
    found: StreamMessage[Any] = StreamMessage(
        stream_name=stream_name,
        subject=subject,
        seq=seq,
        time=_time(time),
        data=data,
        headers=Headers.parse(block) if block else Headers(),
    )
    return typed_message(found, payloads)


def acknowledgements(message: js_sync.Message[Any] | js_async.Message[Any]) -> list[str]:
    """Return what a message of a test has sent, oldest first: `+ACK`, `-NAK`, `+TERM`, `+WPI`.

    A delay or a reason follows the word.

    Args:
        message: The message.
    """
    transport = message._delivery.transport
    return list(cast("_Acknowledgements", transport).words)


class _Made:
    """The parts of a message, as it arrives. `waiting` is when it arrived, and its ack_wait."""

    def __init__(self, payload: Any, model: Any, delivered: Delivered) -> None:
        unknown = delivered.keys() - Delivered.__annotations__.keys()
        if unknown:
            raise TypeError(f"a message has no {', '.join(sorted(unknown))}")
        subject = delivered.get("subject", "test")
        payloads, data, block = _encoded(payload, model, subject, delivered.get("headers"))
        self.payloads: Final = payloads
        reply = delivered.get("reply")
        reply = _reply(delivered) if reply is None else reply
        self.frame: Final = (subject.encode(), reply.encode(), len(block), block + data + b"\r\n")
        left = delivered.get("time_left")
        arrived = 0.0 if left is None else monotonic() + left - _ACK_WAIT
        self.waiting: Final = (arrived, None if left is None else _ACK_WAIT)


def _encoded(
    payload: Any, model: Any, subject: str, headers: Mapping[str, str] | None
) -> tuple[Any, bytes, bytes]:
    """Return the payloads of the type, and the payload and the headers as they are sent."""
    from twinstream.core.payloads.payloads import payloads_of
    from twinstream.core.wire.headers import encode_headers

    payloads: Any = payloads_of(cast("Any", type(payload)) if model is None else model)
    if isinstance(payload, bytes) and model is not None:
        data, merged = payload, headers
    else:
        data, merged = payloads.encode(payload, headers, subject)
    return payloads, data, encode_headers(merged) if merged else b""


def _reply(delivered: Delivered) -> str:
    """Return the reply subject of a delivery, from which a message takes its metadata."""
    seq, domain = delivered.get("seq", 1), delivered.get("domain")
    stream, consumer = delivered.get("stream_name", "TEST"), delivered.get("consumer_name", "test")
    place = f"{domain}.ACCOUNT.{stream}" if domain else stream
    at = _time(delivered.get("time")).ns
    attempt, pending = delivered.get("num_delivered", 1), delivered.get("num_pending", 0)
    return f"$JS.ACK.{place}.{consumer}.{attempt}.{seq}.{seq}.{at}.{pending}"


def _time(given: Timestamp | None) -> Timestamp:
    from twinstream.models import Timestamp

    return Timestamp.from_ns(time_ns()) if given is None else given


def _stored_in(partition: int, delivered: Delivered) -> Delivered:
    """Return a delivery with the subject that it has in a partition."""
    return {**delivered, "subject": f"{partition}.{delivered.get('subject', 'test')}"}

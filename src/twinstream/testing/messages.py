"""Messages for the unit tests of handlers: without a server, with a payload of any type."""

from __future__ import annotations

from collections.abc import Mapping
from time import time_ns
from typing import TYPE_CHECKING, Any, Final, TypeVar, cast

if TYPE_CHECKING:
    import js_async
    import js_sync
    from twinstream.codecs import Codec

__all__ = ["acknowledgements", "async_message", "sync_message"]

T = TypeVar("T")

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


def sync_message(
    payload: T | bytes,
    model: type[T] | Codec[T] | None = None,
    *,
    subject: str = "test",
    headers: Mapping[str, str] | None = None,
    stream_name: str = "TEST",
    consumer_name: str = "test",
    seq: int = 1,
    num_delivered: int = 1,
) -> js_sync.Message[T]:
    """Return a `js_sync.Message` for the unit test of a handler.

    Args:
        payload: The value of the message, or the bytes of a payload, which need not fit.
        model: The type of the payload or its codec; by default the type of `payload`.
        subject: Subject of the message.
        headers: Headers of the message. `Content-Type` is added as a publish adds it.
        stream_name: Name of the stream.
        consumer_name: Name of the consumer.
        seq: Sequence in the stream.
        num_delivered: Number of deliveries including this one.

    Raises:
        BadArgument: The value cannot be encoded.
    """
    from js_sync.consume.delivery import Delivery
    from js_sync.consume.message import message_of

    payloads, frame = _frame(
        payload, model, subject, headers, (stream_name, consumer_name, seq, num_delivered)
    )
    delivery = Delivery(cast("Any", _SyncTransport()), 0.0, None, 5.0, payloads)
    return message_of(frame, delivery)


def async_message(
    payload: T | bytes,
    model: type[T] | Codec[T] | None = None,
    *,
    subject: str = "test",
    headers: Mapping[str, str] | None = None,
    stream_name: str = "TEST",
    consumer_name: str = "test",
    seq: int = 1,
    num_delivered: int = 1,
) -> js_async.Message[T]:
    """Return a `js_async.Message` for the unit test of a handler.

    The arguments are those of `sync_message`.
    """
    from js_async.consume.delivery import Delivery
    from js_async.consume.message import message_of

    payloads, frame = _frame(
        payload, model, subject, headers, (stream_name, consumer_name, seq, num_delivered)
    )
    delivery = Delivery(cast("Any", _AsyncTransport()), 0.0, None, 5.0, payloads)
    return message_of(frame, delivery)


def acknowledgements(message: js_sync.Message[Any] | js_async.Message[Any]) -> list[str]:
    """Return what a message of a test has sent, oldest first: `+ACK`, `-NAK`, `+TERM`, `+WPI`.

    A delay or a reason follows the word.
    """
    transport = message._delivery.transport
    return list(cast("_Acknowledgements", transport).words)


def _frame(
    payload: Any,
    model: Any,
    subject: str,
    headers: Mapping[str, str] | None,
    about: tuple[str, str, int, int],
) -> tuple[Any, Any]:
    """Return the payloads of the type, and a message as it arrives."""
    from twinstream.core.payloads.payloads import payloads_of
    from twinstream.core.wire.headers import encode_headers

    kind = model
    if model is None:
        kind = cast("Any", type(payload))
    payloads = cast("Any", payloads_of(kind))
    data: bytes
    merged: Any = headers
    if isinstance(payload, bytes) and model is not None:
        data = payload
    else:
        data, merged = payloads.encode(payload, headers, subject)
    block = encode_headers(merged) if merged else b""
    stream, consumer, seq, delivered = about
    reply = f"$JS.ACK.{stream}.{consumer}.{delivered}.{seq}.{seq}.{time_ns()}.0"
    return payloads, (subject.encode(), reply.encode(), len(block), block + data + b"\r\n")

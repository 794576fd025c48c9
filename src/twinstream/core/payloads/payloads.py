"""`Payloads`: the codec of a typed handle, with the headers and the place of each message."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final, Generic, Protocol, TypeVar, cast

from twinstream.codecs.codec import Codec, MessageCodec
from twinstream.codecs.content_type import CONTENT_TYPE, check_content_type, header_of
from twinstream.codecs.named_codec import NamedCodec
from twinstream.codecs.plain import as_bytes
from twinstream.core.wire.payload import Unread
from twinstream.core.wire.protocol import Frame
from twinstream.errors import BadArgument
from twinstream.errors.payload import PayloadError
from twinstream.records.headers import Headers, HeaderValues

__all__ = ["Delivered", "Payloads", "payloads_of"]

T = TypeVar("T")

_NO_HEADERS: Final = Headers()


class Delivered(Protocol):
    """What a message of a consumer shows to `Payloads`. It keeps the result in `_payload`."""

    _frame: Frame
    _payload: Any

    @property
    def subject(self) -> str:
        """The subject."""
        ...

    @property
    def metadata(self) -> Any:
        """The stream and the sequence; may raise."""
        ...


class Payloads(Generic[T]):
    """The payloads of one typed handle."""

    def __init__(self, codec: NamedCodec[T]) -> None:
        self.codec: Final = codec
        own = codec.codec
        self._by_message: Final[MessageCodec | None] = (
            own if isinstance(own, MessageCodec) else None
        )
        # The last header block whose `Content-Type` was accepted. Most messages of a publisher
        # have equal blocks, and a comparison is much faster than parsing.
        self._accepted = b""

    @property
    def name(self) -> str:
        """The name of the type."""
        return self.codec.name

    # ---- publishing

    def encode(
        self, value: T, headers: HeaderValues | None, subject: str
    ) -> tuple[bytes, HeaderValues | None]:
        """Return the payload of a value, and the headers with those of the codec.

        A header that the caller gave is kept. Raises `BadArgument` if the codec refuses the value.
        """
        try:
            data, own = self._encoded(value)
        except BadArgument as error:
            raise BadArgument(f"subject {subject}: {error}") from error
        return data, _merged(headers, own)

    def _encoded(self, value: T) -> tuple[bytes, Mapping[str, str]]:
        """Return a value as bytes, and the headers that describe it."""
        if self._by_message is None:
            kind = self.codec.content_type
            return self.codec.encode(value), {CONTENT_TYPE: kind} if kind else {}
        try:
            encoded, own = self._by_message.encode_message(value)
            return as_bytes(encoded), own
        except Exception as error:
            # Codecs may be user code, so they may raise any exception.
            raise self.codec.refused(error) from error

    # ---- receiving

    def decode(self, data: bytes, headers: Mapping[str, str], subject: str) -> T:
        """Return the value of a payload.

        Raises `PayloadError` if the payload does not fit. The error does not name the message: the
        caller adds its stream, sequence and subject.
        """
        if self._by_message is None:
            try:
                check_content_type(self.codec.content_type, headers)
            except PayloadError as error:
                error.for_type(self.name)
                raise
            return self.codec.decode(data)
        try:
            return cast("T", self._by_message.decode_message(data, headers, subject))
        except PayloadError as error:
            error.for_type(self.name)
            raise
        except Exception as error:
            # Codecs may be user code, so they may raise any exception.
            raise self.codec.misfit(error) from error

    def payload(self, message: Delivered) -> T:
        """Return the value of a message, which is decoded at the first call only.

        Raises the same `PayloadError` at each call if it does not fit.
        """
        found = message._payload
        if found is Unread:
            found = message._payload = self._read(message)
        if isinstance(found, PayloadError):
            raise found.with_traceback(None)
        return cast("T", found)

    def error(self, message: Delivered) -> PayloadError | None:
        """Return the error of a message whose payload does not fit, or None."""
        try:
            self.payload(message)
        except PayloadError as error:
            return error
        return None

    def _read(self, message: Delivered) -> T | PayloadError:
        """Return the value of a message, or the error that it does not fit."""
        size, content = message._frame[2], message._frame[3]
        try:
            # A header block that is equal to an accepted one needs no second check.
            if self._by_message is None and (not size or content[:size] == self._accepted):
                return self.codec.decode(content[size:-2])
            block = content[:size]
            headers = Headers.parse(block) if size else _NO_HEADERS
            found = self.decode(content[size:-2], headers, message.subject)
            self._accepted = block
            return found
        except PayloadError as error:
            return placed(error, message)

    def stored(self, message: Any) -> T | PayloadError:
        """Return the value of a message that was read from a stream, or its error."""
        try:
            return self.decode(message.data, message.headers, message.subject)
        except PayloadError as error:
            return error.in_message(message.subject, message.stream_name, message.seq)


def payloads_of(model: type[T] | Codec[T]) -> Payloads[T]:
    """Return the payloads of a type or a codec. Raises `BadArgument` if it cannot be encoded."""
    return Payloads(NamedCodec(model))


def placed(error: PayloadError, message: Delivered) -> PayloadError:
    """Return an error with the place of a delivered message."""
    try:
        about = message.metadata
    except Exception:
        # The reply subject is not JetStream's: an import of another account changed it.
        return error.in_message(message.subject, None, None)
    return error.in_message(message.subject, about.stream, about.stream_seq)


def _merged(headers: HeaderValues | None, own: Mapping[str, str]) -> HeaderValues | None:
    """Return a caller's headers and those of a codec that the caller did not give, in any case."""
    if not headers:
        return own or None
    added = {name: value for name, value in own.items() if header_of(headers, name) is None}
    if not added:
        return headers
    if isinstance(headers, Headers):
        return Headers([*headers.pairs, *added.items()])
    return {**headers, **added}

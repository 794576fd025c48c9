"""`Codec` and `MessageCodec`: the protocols of codecs for payloads."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Protocol, TypeVar, runtime_checkable

from twinstream.codecs.value_codec import ValueCodec

__all__ = ["Codec", "MessageCodec"]

T = TypeVar("T")


class Codec(ValueCodec[T], Protocol[T]):
    """A conversion of values to payloads, and back. Any object with these three members is one.

    ::

        class Upper:
            content_type = "text/plain"

            def encode(self, value: str) -> bytes:
                return value.upper().encode()

            def decode(self, data: bytes) -> str:
                try:
                    return data.decode().lower()
                except UnicodeDecodeError as error:
                    raise PayloadError("", f"not UTF-8: {error}") from error

    `jet.typed(Upper())` and `consumer.typed(Upper())` use it, and so does the handler of a worker
    with `Message[Annotated[str, Upper()]]`. Several tasks and threads share one codec and may call
    it at the same time.
    """

    @property
    def content_type(self) -> str:
        """The media type of the payloads, such as `application/json`.

        A publish writes it as the header `Content-Type`. A message with another media type is not
        decoded, and raises `PayloadError`; a message without the header is decoded. An empty text
        writes no header, and accepts every media type.
        """
        ...

    def encode(self, value: T) -> bytes:
        """Return the payload. Any error becomes a `BadArgument` of the publish.

        Args:
            value: The value to encode.
        """
        ...

    def decode(self, data: bytes) -> T:
        """Return the value of a payload, which any client may have published.

        Raise `PayloadError(path, reason)` if it does not fit. Any other error becomes one. A codec
        that decompresses must limit the size of the result itself.

        Args:
            data: The bytes of a payload.
        """
        ...


@runtime_checkable
class MessageCodec(Protocol):
    """Two further members of a codec whose messages also have headers of their own.

    If a codec has them, publishing and receiving call them instead of `encode` and `decode`, and
    the codec itself is responsible for `Content-Type`. A bucket stores no headers, so it calls
    `encode` and `decode`.
    """

    def encode_message(self, value: object) -> tuple[bytes, Mapping[str, str]]:
        """Return the payload and the headers to add.

        Args:
            value: The value to encode.
        """
        ...

    def decode_message(self, data: bytes, headers: Mapping[str, str], subject: str) -> object:
        """Return the value of a message. Raise `PayloadError` if the message does not fit.

        Args:
            data: The bytes of a payload.
            headers: Headers of the message.
            subject: Subject of the message.
        """
        ...

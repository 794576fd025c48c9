"""`BytesCodec` and `TextCodec`: payloads without a format of their own."""

from __future__ import annotations

from typing import cast

from twinstream.errors import BadArgument
from twinstream.errors.payload import PayloadError

__all__ = ["BytesCodec", "TextCodec", "as_bytes"]


class BytesCodec:
    """A codec whose values are the bytes of the payloads. It accepts every media type."""

    content_type = ""
    """The media type of the payloads."""

    def encode(self, value: bytes) -> bytes:
        """Return the value.

        Args:
            value: The value to encode.
        """
        return as_bytes(value)

    def decode(self, data: bytes) -> bytes:
        """Return the payload.

        Args:
            data: The bytes of a payload.
        """
        return data


class TextCodec:
    """A codec whose values are text, published as UTF-8."""

    content_type = "text/plain; charset=utf-8"
    """The media type of the payloads."""

    def encode(self, value: str) -> bytes:
        """Return the text as UTF-8.

        Args:
            value: The value to encode.
        """
        if not isinstance(value, str):
            raise BadArgument(f"a value of TextCodec must be text, got {type(value).__name__}")
        return value.encode()

    def decode(self, data: bytes) -> str:
        """Return the text of a payload. Raises `PayloadError` unless it is UTF-8.

        Args:
            data: The bytes of a payload.
        """
        try:
            return data.decode()
        except UnicodeDecodeError as error:
            raise PayloadError("", f"not UTF-8: {error}") from error


def as_bytes(data: object) -> bytes:
    """Return bytes, also those of another buffer. Raises `BadArgument` for another object."""
    if isinstance(data, bytes):
        return data
    if isinstance(data, bytearray):
        return bytes(data)
    if isinstance(data, memoryview):
        return cast("memoryview[int]", data).tobytes()
    if isinstance(data, str):
        raise BadArgument("a value must be bytes, got text: encode it, or use typed(str)")
    raise BadArgument(f"a value must be bytes, got {type(data).__name__}: use typed(...)")

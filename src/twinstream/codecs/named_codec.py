"""`NamedCodec`: the codec of a typed handle, whose errors name the type."""

from __future__ import annotations

from typing import Final, Generic, TypeVar

from twinstream.codecs.choice import codec_for
from twinstream.codecs.codec import Codec
from twinstream.codecs.data_codec import is_codec
from twinstream.codecs.plain import as_bytes
from twinstream.codecs.type_name import type_name
from twinstream.errors import BadArgument
from twinstream.errors.payload import PayloadError

__all__ = ["NamedCodec"]

T = TypeVar("T")


class NamedCodec(Generic[T]):
    """The codec for a type or a codec that a program gave.

    `decode` raises `PayloadError` with the name of the type, and `encode` raises `BadArgument`,
    whatever the codec raises.
    """

    def __init__(self, model: type[T] | Codec[T]) -> None:
        self.codec: Final[Codec[T]] = codec_for(model)
        self.name: Final = type(model).__name__ if is_codec(model) else type_name(model)
        self.content_type: Final = self.codec.content_type
        self.needs_headers: Final = bool(getattr(self.codec, "needs_headers", False))

    def __repr__(self) -> str:
        return f"<{type(self.codec).__name__} of {self.name}>"

    def encode(self, value: T) -> bytes:
        """Return the payload."""
        try:
            return as_bytes(self.codec.encode(value))
        except Exception as error:
            raise self.refused(error) from error

    def decode(self, data: bytes) -> T:
        """Return the value of a payload."""
        try:
            return self.codec.decode(data)
        except PayloadError as error:
            error.for_type(self.name)
            raise
        except Exception as error:
            # Codecs may be user code, so they may raise any exception.
            raise self.misfit(error) from error

    def refused(self, error: Exception) -> BadArgument:
        """Return the error of a value that cannot be encoded."""
        # Codecs may be user code, so they may raise any exception.
        text = str(error) if isinstance(error, BadArgument) else f"{type(error).__name__}: {error}"
        return BadArgument(f"typed({self.name}): {text}")

    def misfit(self, error: Exception) -> PayloadError:
        """Return the error of a payload on which the codec failed."""
        return PayloadError("", f"{type(error).__name__}: {error}").for_type(self.name)

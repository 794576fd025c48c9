"""`codec_for`: which codec serves a type."""

from __future__ import annotations

from typing import TypeVar, cast, get_args

from twinstream.codecs.codec import Codec
from twinstream.codecs.data_codec import data_codec
from twinstream.codecs.libraries import is_cloud_event

__all__ = ["codec_for"]

T = TypeVar("T")


def codec_for(model: type[T] | Codec[T]) -> Codec[T]:
    """Return the codec for a type. A codec is returned as it is.

    `bytes` are the payload itself. `Annotated[T, codec]` names its codec. A pydantic model, a
    struct of msgspec, and a type of such classes are read by their library. `CloudEvent[T]` is a
    CloudEvent in the structured form. Every other type, `str` too, is JSON by `JsonCodec`.

    Raises `BadArgument` if a part of the type cannot be encoded.

    Args:
        model: A type, or a codec.
    """
    if is_cloud_event(model):
        from twinstream.codecs.cloud_event_codec import CloudEventCodec

        data = next(iter(get_args(model)), bytes)
        return cast("Codec[T]", CloudEventCodec(data))
    return cast("Codec[T]", data_codec(model))

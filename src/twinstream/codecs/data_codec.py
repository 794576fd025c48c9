"""Which codec serves a type other than an event."""

from __future__ import annotations

from typing import Annotated, Any, cast, get_args, get_origin

from twinstream.codecs.codec import Codec
from twinstream.errors import BadArgument

__all__ = ["data_codec", "is_codec"]


def data_codec(model: Any) -> Codec[Any]:
    """Return the codec for a type, or a codec as it is. See `codec_for`."""
    from twinstream.codecs.libraries import (
        has_part,
        is_pydantic,
        is_struct,
        own_json,
    )

    if is_codec(model):
        return cast("Codec[Any]", model)
    if get_origin(model) is Annotated:
        named = [each for each in get_args(model)[1:] if is_codec(each)]
        if named:
            return cast("Codec[Any]", named[0])
    if model is bytes:
        from twinstream.codecs.plain import BytesCodec

        return BytesCodec()
    if own_json(model) or has_part(model, is_pydantic):
        from twinstream.codecs.pydantic_codec import PydanticCodec

        return PydanticCodec(model)
    if has_part(model, is_struct):
        from twinstream.codecs.msgspec_codec import MsgspecCodec

        return MsgspecCodec(model)
    if isinstance(model, str):
        raise BadArgument(f"a type or a codec is required, got the text {model!r}")
    from twinstream.codecs.json_codec import JsonCodec

    return JsonCodec(model)


def is_codec(model: object) -> bool:
    """Return whether an object is a codec, and not a type."""
    if isinstance(model, type):
        return False
    members = ("content_type", "encode", "decode")
    return all(hasattr(model, name) for name in members)

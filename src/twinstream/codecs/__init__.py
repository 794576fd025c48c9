"""Codecs: how payloads, and the keys and values of buckets, are encoded. Both twins use them.

`typed(Order)` of a handle takes a type, for which `codec_for` chooses a codec, or a codec itself.
`KeyValue.with_codecs(key=..., value=...)` takes codecs of keys and values.

- `BytesCodec`, `TextCodec`: raw payloads.
- `JsonCodec`: attrs classes, dataclasses and plain types (cattrs). `PydanticCodec`,
  `MsgspecCodec`: the types of these libraries. `JsonSchemaCodec`: plain data.
- `CloudEventCodec`: `CloudEvent` in the binary and the structured form.
- `Codec`, `MessageCodec`: the protocols for own codecs. `ValueCodec` is enough for a bucket.
- `Base64Keys`, `PathKeys`, `KeyCodecs`, `KeyCodec`: keys of buckets. `ValueCodecs` chains codecs.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any, Final

if TYPE_CHECKING:
    from twinstream.codecs.base64_keys import Base64Keys
    from twinstream.codecs.choice import codec_for
    from twinstream.codecs.cloud_event import CloudEvent
    from twinstream.codecs.cloud_event_codec import CloudEventCodec
    from twinstream.codecs.codec import Codec, MessageCodec
    from twinstream.codecs.json_codec import JsonCodec
    from twinstream.codecs.json_schema import JsonSchemaCodec
    from twinstream.codecs.key_codec import KeyCodec, KeyCodecs
    from twinstream.codecs.msgspec_codec import MsgspecCodec
    from twinstream.codecs.path_keys import PathKeys
    from twinstream.codecs.plain import BytesCodec, TextCodec
    from twinstream.codecs.pydantic_codec import PydanticCodec
    from twinstream.codecs.value_codec import ValueCodec, ValueCodecs

__all__ = [
    "Base64Keys",
    "BytesCodec",
    "CloudEvent",
    "CloudEventCodec",
    "Codec",
    "JsonCodec",
    "JsonSchemaCodec",
    "KeyCodec",
    "KeyCodecs",
    "MessageCodec",
    "MsgspecCodec",
    "PathKeys",
    "PydanticCodec",
    "TextCodec",
    "ValueCodec",
    "ValueCodecs",
    "codec_for",
]

_MODULES: Final = {
    "Base64Keys": "base64_keys",
    "BytesCodec": "plain",
    "CloudEvent": "cloud_event",
    "CloudEventCodec": "cloud_event_codec",
    "Codec": "codec",
    "JsonCodec": "json_codec",
    "JsonSchemaCodec": "json_schema",
    "KeyCodec": "key_codec",
    "KeyCodecs": "key_codec",
    "MessageCodec": "codec",
    "MsgspecCodec": "msgspec_codec",
    "PathKeys": "path_keys",
    "PydanticCodec": "pydantic_codec",
    "TextCodec": "plain",
    "ValueCodec": "value_codec",
    "ValueCodecs": "value_codec",
    "codec_for": "choice",
}


def __getattr__(name: str) -> Any:
    # A program loads only the codecs that it uses.
    if name not in _MODULES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    value = getattr(import_module(f"{__name__}.{_MODULES[name]}"), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted({*globals(), *_MODULES})

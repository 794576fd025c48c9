"""Codecs: how the keys and values of a bucket are stored. Both twins use the same classes.

`KeyValue.with_codecs(key=..., value=...)` takes a codec; `KeyCodecs` and `ValueCodecs` chain
several. `KeyCodec` and `ValueCodec` are the protocols for own codecs.
"""

from __future__ import annotations

from twinstream.core.kv.codecs import (
    Base64Keys,
    JsonCodec,
    KeyCodec,
    KeyCodecs,
    PathKeys,
    ValueCodec,
    ValueCodecs,
)

__all__ = [
    "Base64Keys",
    "JsonCodec",
    "KeyCodec",
    "KeyCodecs",
    "PathKeys",
    "ValueCodec",
    "ValueCodecs",
]

"""Convert the settings of a bucket to the configuration of its stream, and back.

Source: ADR-8, ADR-48, ADR-57. An update reads the stream's configuration and changes only the
settings that differ. So it keeps stream settings that a bucket does not have, which the server or
another client may have set.
"""

from __future__ import annotations

from collections.abc import Callable
from datetime import timedelta
from typing import Any, Final

from twinstream.core.arguments.check_arguments import check_config
from twinstream.core.kv.names import PREFIX, bucket_of, check_bucket
from twinstream.core.read.mirrored import is_read_only_copy
from twinstream.errors import BadArgument, NotABucket
from twinstream.models import (
    Compression,
    KeyValueConfig,
    StreamConfig,
    StreamSource,
    evolve,
)
from twinstream.models.buckets.streams import (
    SAME,
    key_value_mirror,
    key_value_sources,
    key_value_stream,
    own_metadata,
    servers_metadata,
)

__all__ = [
    "Edit",
    "changed_stream",
    "check_is_bucket",
    "key_value_config",
    "stream_config",
]

_MOST_HISTORY: Final = 64
_LEAST_TTL: Final = timedelta(milliseconds=100)
_LEAST_MARKER: Final = timedelta(seconds=1)
_WINDOW: Final = timedelta(minutes=2)

_UNLIMITED: Final = {"max_value_size": -1, "max_bytes": -1, "history": 1, "num_replicas": 1}


def check_key_value(config: KeyValueConfig) -> KeyValueConfig:
    """Return the configuration of a bucket. Raises `BadArgument` if it is invalid."""
    check_config(config, KeyValueConfig)
    check_bucket(config.bucket)
    history = config.history
    if history is not None and (type(history) is not int or not 1 <= history <= _MOST_HISTORY):
        raise BadArgument(f"history must be from 1 to {_MOST_HISTORY}, got {history!r}")
    if config.ttl and config.ttl < _LEAST_TTL:
        raise BadArgument(f"ttl must be 0 or at least 100 ms, got {config.ttl!r}")
    marker = config.limit_marker_ttl
    if marker and marker < _LEAST_MARKER:
        raise BadArgument(f"limit_marker_ttl must be 0 or at least 1 s, got {marker!r}")
    if config.mirror is not None:
        if config.sources:
            raise BadArgument("a bucket is a mirror or has sources, not both")
        if marker:
            raise BadArgument(
                "a mirror creates no markers: omit limit_marker_ttl, the markers of its origin are"
                " copied"
            )
        _check_named(config.mirror, "mirror")
    for source in config.sources or ():
        _check_named(source, "each of the sources")
    return config


def _check_named(source: StreamSource, what: str) -> None:
    if not source.name:
        raise BadArgument(f"{what} needs the name of a bucket")


def stream_config(config: KeyValueConfig) -> StreamConfig:
    """Return the configuration of the stream for a new bucket.

    Raises `BadArgument` for an invalid setting and `InvalidKey` for an invalid name.
    """
    check_key_value(config)
    return key_value_stream(config)


def key_value_config(stream: StreamConfig) -> KeyValueConfig:
    """Return the settings of the bucket in a stream. Raises `NotABucket` for another stream."""
    check_is_bucket(stream)
    given: dict[str, Any] = {ours: getattr(stream, theirs) for ours, theirs in SAME.items()}
    # The server writes "no limit" as zero, which would be shown as 0:00:00.
    given["ttl"] = stream.max_age or None
    return KeyValueConfig(
        bucket=bucket_of(stream.name or ""),
        compression=stream.compression not in {None, Compression.NONE},
        metadata=own_metadata(stream.metadata),
        mirror=stream.mirror,
        sources=stream.sources,
        **given,
    )


def check_is_bucket(stream: StreamConfig) -> None:
    """Raise `NotABucket` if the stream does not have the layout of a bucket."""
    name = stream.name or ""
    bucket = bucket_of(name)
    if not name.startswith(PREFIX) or not bucket:
        raise NotABucket(f"stream {name} is not a bucket: its name does not begin with {PREFIX}")
    if stream.mirror is not None or is_read_only_copy(stream, f"$KV.{bucket}."):
        return
    if f"$KV.{bucket}.>" not in (stream.subjects or ()):
        raise NotABucket(f"stream {name} is not a bucket: its subjects lack $KV.{bucket}.>")


def changed_stream(
    stream: StreamConfig, before: KeyValueConfig, after: KeyValueConfig
) -> StreamConfig:
    """Return a stream's configuration with those settings of `after` that differ from `before`.

    Raises `BadArgument` if a setting of `after` is invalid or if the names of the buckets differ.
    """
    check_key_value(after)
    if after.bucket != before.bucket:
        raise BadArgument(f"a bucket cannot be renamed, from {before.bucket} to {after.bucket}")
    changes: dict[str, Any] = {}
    for ours, theirs in SAME.items():
        old, new = getattr(before, ours), getattr(after, ours)
        # The server reports an absent duration as 0.
        if old != new and (old or new):
            changes[theirs] = _UNLIMITED.get(ours) if new is None else new
    if after.ttl != before.ttl and after.ttl:
        # The server refuses a duplicate window that is longer than the maximum age.
        window = stream.duplicate_window or _WINDOW
        changes["duplicate_window"] = min(window, after.ttl)
    if after.limit_marker_ttl and not stream.allow_msg_ttl:
        changes["allow_msg_ttl"] = True
    if after.compression != before.compression:
        changes["compression"] = Compression.S2 if after.compression else Compression.NONE
    if after.metadata != before.metadata:
        changes["metadata"] = {
            **servers_metadata(stream.metadata),
            **(own_metadata(after.metadata) or {}),
        }
    if after.mirror != before.mirror:
        changes |= _new_mirror(after)
    if after.sources != before.sources:
        changes["sources"] = key_value_sources(after) or None
    return evolve(stream, **changes) if changes else stream


def _new_mirror(after: KeyValueConfig) -> dict[str, Any]:
    if after.mirror is not None:
        return {"mirror": key_value_mirror(after.mirror)}
    # Turn a mirror into an independent bucket (server 2.12).
    return {"mirror": None, "mirror_direct": False, "subjects": [f"$KV.{after.bucket}.>"]}


Edit = Callable[[KeyValueConfig], KeyValueConfig]
"""A function that receives the current settings and returns a changed copy."""

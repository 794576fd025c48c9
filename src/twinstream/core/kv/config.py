"""A bucket's settings as the configuration of its stream, and back.

Source: ADR-8, ADR-48, ADR-57. What a bucket does not name stays as the server or another client
set it: an update reads the stream's configuration and changes what differs.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from datetime import timedelta
from typing import Any, Final

from twinstream.core.kv.errors import NotABucket
from twinstream.core.kv.names import PREFIX, bucket_of, check_bucket, stream_of
from twinstream.errors import BadArgument
from twinstream.models import (
    Compression,
    DiscardPolicy,
    KeyValueConfig,
    StreamConfig,
    StreamSource,
    SubjectTransform,
    evolve,
)

__all__ = [
    "Edit",
    "changed_stream",
    "check_is_bucket",
    "key_value_config",
    "merged",
    "stream_config",
]

_MOST_HISTORY: Final = 64
_LEAST_TTL: Final = timedelta(milliseconds=100)
_LEAST_MARKER: Final = timedelta(seconds=1)
_WINDOW: Final = timedelta(minutes=2)
_SERVERS: Final = "_nats."

# Members that mean the same in the stream, by the name in the bucket.
_SAME: Final = {
    "description": "description",
    "history": "max_msgs_per_subject",
    "ttl": "max_age",
    "max_value_size": "max_msg_size",
    "max_bytes": "max_bytes",
    "storage": "storage",
    "num_replicas": "num_replicas",
    "placement": "placement",
    "republish": "republish",
    "limit_marker_ttl": "subject_delete_marker_ttl",
}
_UNLIMITED: Final = {"max_value_size": -1, "max_bytes": -1, "history": 1, "num_replicas": 1}


def check_key_value(config: KeyValueConfig) -> KeyValueConfig:
    """Return the configuration of a bucket, or raise `BadArgument`."""
    if not isinstance(config, KeyValueConfig):
        raise BadArgument(f"a KeyValueConfig is expected, got {config!r:.80}")
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
                "a mirror makes no markers: leave limit_marker_ttl out, those of its origin are"
                " copied"
            )
        _check_named(config.mirror, "mirror")
    for source in config.sources or ():
        _check_named(source, "each of the sources")
    return config


def _check_named(source: StreamSource, what: str) -> None:
    if not source.name:
        raise BadArgument(f"{what} needs a name, that of the bucket")


def stream_config(config: KeyValueConfig) -> StreamConfig:
    """Return the configuration of a bucket's stream. Raises `BadArgument`, `InvalidKey`."""
    check_key_value(config)
    given = {
        theirs: getattr(config, ours)
        for ours, theirs in _SAME.items()
        if getattr(config, ours) is not None
    }
    given.setdefault("max_msgs_per_subject", 1)
    if not config.ttl:
        given.pop("max_age", None)
    if config.limit_marker_ttl:
        given["allow_msg_ttl"] = True
    else:
        given.pop("subject_delete_marker_ttl", None)
    stream = StreamConfig(
        name=stream_of(config.bucket),
        discard=DiscardPolicy.NEW,
        allow_rollup_hdrs=True,
        deny_delete=True,
        deny_purge=False,
        allow_direct=True,
        compression=Compression.S2 if config.compression else None,
        metadata=_own(config.metadata),
        unknown=dict(config.unknown),
        **given,
    )
    if config.mirror is not None:
        return evolve(stream, mirror=_mirror(config.mirror), mirror_direct=True)
    subjects = [f"$KV.{config.bucket}.>"]
    return evolve(stream, subjects=subjects, sources=_sources(config) or None)


def _mirror(mirror: StreamSource) -> StreamSource:
    return evolve(mirror, name=_stream_name(mirror))


def _sources(config: KeyValueConfig) -> list[StreamSource]:
    return [_source(each, config.bucket) for each in config.sources or ()]


def _source(source: StreamSource, bucket: str) -> StreamSource:
    """Return a source whose keys become keys of the bucket; one with transforms stays as it is."""
    if source.subject_transforms:
        return source
    name = _stream_name(source)
    src = source.filter_subject or f"$KV.{bucket_of(name)}.>"
    dest = f"$KV.{bucket}.{src.removeprefix(f'$KV.{bucket_of(name)}.')}"
    transform = SubjectTransform(src=src, dest=dest)
    # The server takes a filter or transforms, not both.
    return evolve(source, name=name, filter_subject=None, subject_transforms=[transform])


def _stream_name(source: StreamSource) -> str:
    name = source.name or ""
    return name if name.startswith(PREFIX) else PREFIX + name


def _own(metadata: Mapping[str, str] | None) -> dict[str, str] | None:
    """Return metadata without what the server added."""
    if metadata is None:
        return None
    return {key: value for key, value in metadata.items() if not key.startswith(_SERVERS)}


def key_value_config(stream: StreamConfig) -> KeyValueConfig:
    """Return the settings of the bucket that a stream holds. Raises `NotABucket`."""
    check_is_bucket(stream)
    given: dict[str, Any] = {ours: getattr(stream, theirs) for ours, theirs in _SAME.items()}
    return KeyValueConfig(
        bucket=bucket_of(stream.name or ""),
        compression=stream.compression not in {None, Compression.NONE},
        metadata=_own(stream.metadata),
        mirror=stream.mirror,
        sources=stream.sources,
        **given,
    )


def check_is_bucket(stream: StreamConfig) -> None:
    """Raise `NotABucket` if a stream is not laid out as a bucket."""
    name = stream.name or ""
    bucket = bucket_of(name)
    if not name.startswith(PREFIX) or not bucket:
        raise NotABucket(f"stream {name} is no bucket: its name does not begin with {PREFIX}")
    if stream.mirror is None and f"$KV.{bucket}.>" not in (stream.subjects or ()):
        raise NotABucket(f"stream {name} is no bucket: its subjects lack $KV.{bucket}.>")


def merged(current: KeyValueConfig, given: KeyValueConfig) -> KeyValueConfig:
    """Return the present settings with those that are given in their place."""
    return evolve(
        current,
        **{
            name: value
            for name in (*_SAME, "compression", "metadata", "mirror", "sources")
            if (value := getattr(given, name)) is not None
        },
    )


def changed_stream(
    stream: StreamConfig, before: KeyValueConfig, after: KeyValueConfig
) -> StreamConfig:
    """Return a stream's configuration with what differs between two settings of its bucket.

    Raises `BadArgument` for settings that no bucket may have.
    """
    check_key_value(after)
    if after.bucket != before.bucket:
        raise BadArgument(f"a bucket cannot be renamed, from {before.bucket} to {after.bucket}")
    changes: dict[str, Any] = {}
    for ours, theirs in _SAME.items():
        old, new = getattr(before, ours), getattr(after, ours)
        if old != new:
            changes[theirs] = _UNLIMITED.get(ours) if new is None else new
    if after.ttl != before.ttl and after.ttl:
        # The window may not be longer than the age.
        window = stream.duplicate_window or _WINDOW
        changes["duplicate_window"] = min(window, after.ttl)
    if after.limit_marker_ttl and not stream.allow_msg_ttl:
        changes["allow_msg_ttl"] = True
    if after.compression != before.compression:
        changes["compression"] = Compression.S2 if after.compression else Compression.NONE
    if after.metadata != before.metadata:
        servers = {
            key: value for key, value in (stream.metadata or {}).items() if key.startswith(_SERVERS)
        }
        changes["metadata"] = {**servers, **(_own(after.metadata) or {})}
    if after.mirror != before.mirror:
        changes |= _new_mirror(after)
    if after.sources != before.sources:
        changes["sources"] = _sources(after) or None
    return evolve(stream, **changes) if changes else stream


def _new_mirror(after: KeyValueConfig) -> dict[str, Any]:
    if after.mirror is not None:
        return {"mirror": _mirror(after.mirror)}
    # A mirror that becomes a bucket of its own (server 2.12).
    return {"mirror": None, "mirror_direct": False, "subjects": [f"$KV.{after.bucket}.>"]}


Edit = Callable[[KeyValueConfig], KeyValueConfig]
"""What changes settings: takes the present ones, returns a changed copy."""

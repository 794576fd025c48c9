"""The configuration of the stream behind a key-value bucket or an object store.

Source: ADR-8, ADR-20, ADR-48, ADR-57.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from attrs import evolve

from twinstream.models.generated.config.stream import (
    Compression,
    DiscardPolicy,
    KeyValueConfig,
    ObjectStoreConfig,
    StreamConfig,
    StreamSource,
    SubjectTransform,
)

KEY_VALUE_PREFIX: Final = "KV_"
OBJECT_STORE_PREFIX: Final = "OBJ_"

SAME: Final = {
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
"""A map from settings of a key-value bucket to the stream settings with the same values."""

_SERVERS: Final = "_nats."


def key_value_stream(config: KeyValueConfig) -> StreamConfig:
    """Return the config of the stream for a key-value bucket. Does not validate the settings."""
    given = {
        theirs: getattr(config, ours)
        for ours, theirs in SAME.items()
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
        name=KEY_VALUE_PREFIX + config.bucket,
        discard=DiscardPolicy.NEW,
        allow_rollup_hdrs=True,
        deny_delete=True,
        deny_purge=False,
        allow_direct=True,
        compression=Compression.S2 if config.compression else None,
        metadata=own_metadata(config.metadata),
        unknown=dict(config.unknown),
        **given,
    )
    if config.mirror is not None:
        return evolve(stream, mirror=key_value_mirror(config.mirror), mirror_direct=True)
    subjects = [f"$KV.{config.bucket}.>"]
    return evolve(stream, subjects=subjects, sources=key_value_sources(config) or None)


def key_value_mirror(mirror: StreamSource) -> StreamSource:
    """Return the mirror with the name of a stream instead of the name of a bucket."""
    return evolve(mirror, name=_stream_name(mirror))


def key_value_sources(config: KeyValueConfig) -> list[StreamSource]:
    """Return the sources of a bucket as sources of its stream."""
    return [key_value_source(each, config.bucket) for each in config.sources or ()]


def key_value_source(source: StreamSource, bucket: str, stored: str | None = None) -> StreamSource:
    """Return a source with a transform from the origin's key subjects to those of `bucket`.

    The transforms of a source are kept. Then its name is only changed to that of a bucket's stream
    if all transforms are for keys of buckets; otherwise it is the name of a stream. `stored` is the
    prefix of the subjects in the origin, if they do not begin with the name of the origin's bucket.
    """
    if source.subject_transforms:
        is_bucket = all((each.src or "").startswith("$KV.") for each in source.subject_transforms)
        return evolve(source, name=_stream_name(source)) if is_bucket else source
    name = _stream_name(source)
    theirs = f"$KV.{name.removeprefix(KEY_VALUE_PREFIX)}."
    kept = (source.filter_subject or f"{theirs}>").removeprefix(stored or theirs)
    kept = kept.removeprefix(theirs)
    src, dest = f"{stored or theirs}{kept}", f"$KV.{bucket}.{kept}"
    transform = SubjectTransform(src=src, dest=dest)
    # The server accepts a filter or transforms, but not both.
    return evolve(source, name=name, filter_subject=None, subject_transforms=[transform])


def _stream_name(source: StreamSource) -> str:
    name = source.name or ""
    return name if name.startswith(KEY_VALUE_PREFIX) else KEY_VALUE_PREFIX + name


def object_store_stream(config: ObjectStoreConfig) -> StreamConfig:
    """Return the config of the stream for an object store. Does not validate the settings."""
    mirror = _object_store_mirror(config.mirror)
    subjects = [f"$O.{config.bucket}.C.>", f"$O.{config.bucket}.M.>"]
    return StreamConfig(
        name=OBJECT_STORE_PREFIX + config.bucket,
        subjects=subjects if mirror is None else None,
        description=config.description,
        max_age=config.ttl,
        max_bytes=config.max_bytes,
        storage=config.storage,
        num_replicas=config.num_replicas,
        placement=config.placement,
        compression=Compression.S2 if config.compression else None,
        metadata=config.metadata,
        discard=DiscardPolicy.NEW,
        # The metadata of an object is a rollup message. Without `allow_rollup_hdrs`, a mirror on
        # server 2.11 stops at the first of these messages.
        allow_rollup_hdrs=True,
        allow_direct=True,
        # Without `mirror_direct`, the mirror does not answer direct gets for its own name.
        mirror_direct=None if mirror is None else True,
        mirror=mirror,
    )


def _object_store_mirror(mirror: StreamSource | None) -> StreamSource | None:
    if mirror is None:
        return None
    name = mirror.name or ""
    is_stream = len(name) > len(OBJECT_STORE_PREFIX) and name.startswith(OBJECT_STORE_PREFIX)
    return mirror if is_stream else evolve(mirror, name=OBJECT_STORE_PREFIX + name)


def own_metadata(metadata: Mapping[str, str] | None) -> dict[str, str] | None:
    """Return metadata without the entries that the server added; None stays None."""
    if metadata is None:
        return None
    return {key: value for key, value in metadata.items() if not key.startswith(_SERVERS)}


def servers_metadata(metadata: Mapping[str, str] | None) -> dict[str, str]:
    """Return the entries of metadata that the server added."""
    return {key: value for key, value in (metadata or {}).items() if key.startswith(_SERVERS)}

"""The settings of an object store as those of its stream, and back.

Source: ADR-20, ADR-57.
"""

from __future__ import annotations

from typing import Final

from attrs import frozen

from twinstream.core.object_store.errors import NotAnObjectStore
from twinstream.core.object_store.names import ObjectSubjects, bucket_of, check_bucket, stream_of
from twinstream.errors import BadArgument
from twinstream.models import (
    Compression,
    DiscardPolicy,
    Duration,
    ObjectStoreConfig,
    StorageType,
    StreamConfig,
    StreamInfo,
    StreamSource,
    evolve,
)

__all__ = [
    "ObjectStoreStatus",
    "changed_stream_config",
    "check_store_config",
    "origin_of",
    "store_config",
    "store_stream_config",
]

# Metadata that servers add.
_OF_SERVERS: Final = "_nats."


def check_store_config(config: object) -> ObjectStoreConfig:
    """Return a configuration, or raise `BadArgument` for anything else."""
    if not isinstance(config, ObjectStoreConfig):
        kind = type(config).__name__
        raise BadArgument(f"an ObjectStoreConfig of twinstream.models is expected, got {kind}")
    check_bucket(config.bucket)
    return config


def store_stream_config(config: ObjectStoreConfig) -> StreamConfig:
    """Return the configuration of the stream behind a store. Raises `BadArgument`."""
    check_store_config(config)
    mirror = _mirror(config)
    return StreamConfig(
        name=stream_of(config.bucket),
        subjects=ObjectSubjects(config.bucket).all if mirror is None else None,
        description=config.description,
        max_age=config.ttl,
        max_bytes=config.max_bytes,
        storage=config.storage,
        num_replicas=config.num_replicas,
        placement=config.placement,
        compression=Compression.S2 if config.compression else None,
        metadata=config.metadata,
        discard=DiscardPolicy.NEW,
        # Without it a mirror on server 2.11 stops at the first description.
        allow_rollup_hdrs=True,
        allow_direct=True,
        # Without it the mirror does not answer direct gets to its own name.
        mirror_direct=None if mirror is None else True,
        mirror=mirror,
    )


def changed_stream_config(present: StreamConfig, config: ObjectStoreConfig) -> StreamConfig:
    """Return the configuration of a stream with the settings of its store replaced.

    What a store has no setting for stays.
    """
    wanted = store_stream_config(config)
    kept = {
        name: value
        for name, value in (present.metadata or {}).items()
        if name.startswith(_OF_SERVERS)
    }
    metadata = {**kept, **(wanted.metadata or {})}
    return evolve(
        present,
        description=wanted.description,
        max_age=wanted.max_age or Duration(),
        max_bytes=-1 if wanted.max_bytes is None else wanted.max_bytes,
        storage=wanted.storage or StorageType.FILE,
        num_replicas=wanted.num_replicas or 1,
        placement=wanted.placement,
        compression=wanted.compression,
        metadata=metadata or None,
        mirror=present.mirror if wanted.mirror is None else wanted.mirror,
    )


def store_config(stream: StreamConfig) -> ObjectStoreConfig:
    """Return the settings of the store of a stream. Raises `NotAnObjectStore`."""
    bucket = bucket_of(stream.name)
    if bucket is None or not _is_store(bucket, stream):
        raise NotAnObjectStore(
            f"stream {stream.name} is not an object store: its subjects are"
            f" {', '.join(stream.subjects or ()) or 'missing'}"
        )
    metadata = {
        name: value
        for name, value in (stream.metadata or {}).items()
        if not name.startswith(_OF_SERVERS)
    }
    return ObjectStoreConfig(
        bucket=bucket,
        description=stream.description,
        ttl=stream.max_age or None,
        max_bytes=stream.max_bytes,
        storage=stream.storage,
        num_replicas=stream.num_replicas,
        placement=stream.placement,
        compression=stream.compression not in (None, Compression.NONE),
        metadata=metadata or None,
        mirror=stream.mirror,
    )


def origin_of(stream: StreamConfig) -> str | None:
    """Return the bucket that a store mirrors, None where it is no mirror."""
    return None if stream.mirror is None else bucket_of(stream.mirror.name)


def _is_store(bucket: str, stream: StreamConfig) -> bool:
    if stream.mirror is not None:
        return origin_of(stream) is not None
    return set(ObjectSubjects(bucket).all) <= set(stream.subjects or ())


def _mirror(config: ObjectStoreConfig) -> StreamSource | None:
    mirror = config.mirror
    if mirror is None:
        return None
    if not mirror.name:
        raise BadArgument(f"the mirror of bucket {config.bucket} needs the name of its origin")
    return mirror if bucket_of(mirror.name) else evolve(mirror, name=stream_of(mirror.name))


@frozen(kw_only=True)
class ObjectStoreStatus:
    """The settings and the size of an object store, as the server answered."""

    config: ObjectStoreConfig
    """The settings of the store."""
    size: int
    """Bytes of all that the store holds, descriptions of objects included."""
    is_sealed: bool
    """Whether nothing can be added or removed any more."""
    info: StreamInfo
    """Settings and state of the stream behind the store."""

    @property
    def bucket(self) -> str:
        """The name of the store."""
        return self.config.bucket

    @property
    def mirror_of(self) -> str | None:
        """The bucket that this store copies, None where it copies none."""
        return origin_of(self.info.config)

    @classmethod
    def of(cls, info: StreamInfo) -> ObjectStoreStatus:
        """Return the status of the store of a stream. Raises `NotAnObjectStore`."""
        return cls(
            config=store_config(info.config),
            size=info.state.bytes,
            is_sealed=bool(info.config.sealed),
            info=info,
        )

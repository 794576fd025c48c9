"""Convert the settings of an object store to the configuration of its stream, and back.

Source: ADR-20, ADR-57.
"""

from __future__ import annotations

from collections.abc import Sequence

from attrs import frozen

from twinstream.core.arguments.check_arguments import check_config
from twinstream.core.arguments.nats_py_names import hint_attributes
from twinstream.core.object_store.names import ObjectSubjects, bucket_of, check_bucket
from twinstream.core.read.mirrored import destinations, first_tokens, is_read_only_copy
from twinstream.errors import BadArgument, NotABucket
from twinstream.models import (
    Compression,
    Duration,
    ObjectStoreConfig,
    StorageType,
    StreamConfig,
    StreamInfo,
    evolve,
)
from twinstream.models.buckets.streams import (
    OBJECT_STORE_PREFIX,
    object_store_stream,
    own_metadata,
    servers_metadata,
)

__all__ = [
    "ObjectStoreStatus",
    "changed_stream_config",
    "check_store_config",
    "is_copy",
    "origin_of",
    "store_config",
    "store_status",
    "store_stream_config",
    "stored_subjects",
]


def check_store_config(config: ObjectStoreConfig) -> ObjectStoreConfig:
    """Return the configuration of a store. Raises `BadArgument` if it is invalid."""
    check_config(config, ObjectStoreConfig)
    check_bucket(config.bucket)
    if config.mirror is not None and not config.mirror.name:
        raise BadArgument(f"the mirror of bucket {config.bucket} needs the name of its origin")
    return config


def store_stream_config(config: ObjectStoreConfig) -> StreamConfig:
    """Return the configuration of the stream for a store. Raises `BadArgument` if it is invalid."""
    check_store_config(config)
    return object_store_stream(config)


def changed_stream_config(present: StreamConfig, config: ObjectStoreConfig) -> StreamConfig:
    """Return a stream's configuration with the settings of `config`.

    Stream settings that a store does not have are kept.
    """
    wanted = store_stream_config(config)
    metadata = {**servers_metadata(present.metadata), **(wanted.metadata or {})}
    window, age = present.duplicate_window, wanted.max_age
    if window and age and window > age:
        # The server refuses a duplicate window that is longer than the maximum age.
        window = age
    return evolve(
        present,
        description=wanted.description,
        duplicate_window=window,
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
    """Return the settings of the store in a stream. Raises `NotABucket` for other streams."""
    bucket = bucket_of(stream.name)
    if bucket is None or not _is_store(bucket, stream):
        raise _not_a_store(stream)
    return ObjectStoreConfig(
        bucket=bucket,
        description=stream.description,
        ttl=stream.max_age or None,
        max_bytes=stream.max_bytes,
        storage=stream.storage,
        num_replicas=stream.num_replicas,
        placement=stream.placement,
        compression=stream.compression not in (None, Compression.NONE),
        metadata=own_metadata(stream.metadata) or None,
        mirror=stream.mirror,
    )


def _not_a_store(stream: StreamConfig) -> NotABucket:
    return NotABucket(
        f"stream {stream.name} is not an object store: its subjects are"
        f" {', '.join(stream.subjects or ()) or 'missing'}"
    )


def origin_of(stream: StreamConfig) -> str | None:
    """Return the bucket that a store mirrors, None if it is not a mirror."""
    return None if stream.mirror is None else bucket_of(stream.mirror.name)


def stored_subjects(stream: StreamConfig, origins: Sequence[StreamConfig]) -> ObjectSubjects:
    """Return the subjects of the stored messages of a store.

    A mirror stores the subjects of the store that it copies, unless it transforms them. `origins`
    are the streams that a mirror copies, the nearest one first. Raises `NotABucket` if the
    subjects are not those of one store.
    """
    mirrors = [each.mirror for each in (stream, *origins) if each.mirror is not None]
    bucket = bucket_of(mirrors[-1].name if mirrors else stream.name)
    for mirror in reversed(mirrors):
        if mirror.subject_transforms:
            start = first_tokens(destinations(mirror), 2) or ""
            bucket = (
                bucket_of(f"{OBJECT_STORE_PREFIX}{start[3:-1]}") if start[:3] == "$O." else None
            )
    if bucket is None:
        raise NotABucket(
            f"stream {stream.name} is not an object store: it mirrors {mirrors[0].name}, and its"
            " messages do not have the subjects $O.<bucket>.> of one store"
        )
    return ObjectSubjects(bucket)


def is_copy(stream: StreamConfig) -> bool:
    """Return whether a stream without subjects copies objects from others, so it is read-only."""
    bucket = bucket_of(stream.name)
    return bucket is not None and is_read_only_copy(stream, f"$O.{bucket}.")


def _is_store(bucket: str, stream: StreamConfig) -> bool:
    if stream.mirror is not None:
        return origin_of(stream) is not None or bool(stream.mirror.subject_transforms)
    return is_copy(stream) or set(ObjectSubjects(bucket).all) <= set(stream.subjects or ())


@hint_attributes
@frozen(kw_only=True)
class ObjectStoreStatus:
    """The settings and the size of an object store, as reported by the server."""

    config: ObjectStoreConfig
    """The settings of the store."""
    size: int
    """The size of the store in bytes, including the metadata of objects."""
    is_sealed: bool
    """Whether the store is permanently read-only."""
    info: StreamInfo
    """The settings and the state of the store's stream."""

    @property
    def bucket(self) -> str:
        """The name of the store."""
        return self.config.bucket

    @property
    def mirror_of(self) -> str | None:
        """The bucket that this store mirrors, None if it is not a mirror."""
        return origin_of(self.info.config)


def store_status(info: StreamInfo) -> ObjectStoreStatus:
    """Return the status of the store in a stream. Raises `NotABucket` for another stream."""
    return ObjectStoreStatus(
        config=store_config(info.config),
        size=info.state.bytes,
        is_sealed=bool(info.config.sealed),
        info=info,
    )

"""Create, change, find and delete object stores."""

from __future__ import annotations

from js_async.api.api import Api
from js_async.api.create_update import create_stream, update_stream
from js_async.api.streams_of_kind import NamesOfKind, StatusesOfKind
from js_async.object_store.store import ObjectStore
from js_async.stream import Stream
from twinstream.core.deadline import Seconds
from twinstream.core.object_store.config import (
    ObjectStoreStatus,
    changed_stream_config,
    check_store_config,
    store_config,
    store_stream_config,
)
from twinstream.core.object_store.errors import NotAnObjectStore, ObjectStoreNotFound
from twinstream.core.object_store.names import bucket_of, stream_of
from twinstream.errors import StreamExists, StreamNotFound
from twinstream.models import ObjectStoreConfig, StreamInfo

__all__ = ["Names", "Statuses", "create", "create_or_update", "delete", "get", "update"]


async def create(api: Api, config: ObjectStoreConfig, timeout: Seconds | None) -> ObjectStore:
    """Create a store. Raises `StreamExists` with the differences."""
    wanted = store_stream_config(config)
    deadline = api.deadline(timeout)
    info = await create_stream(api, stream_of(config.bucket), wanted, False, deadline)
    return ObjectStore(api, config.bucket, info)


async def get(api: Api, bucket: str, timeout: Seconds | None) -> ObjectStore:
    """Return an existing store."""
    info = await _info(api, bucket, timeout)
    # Raises `NotAnObjectStore` if the stream is not an object store.
    store_config(info.config)
    return ObjectStore(api, bucket, info)


async def update(api: Api, config: ObjectStoreConfig, timeout: Seconds | None) -> ObjectStore:
    """Replace the settings of an existing store."""
    bucket = check_store_config(config).bucket
    present = (await _info(api, bucket, timeout)).config
    store_config(present)
    changed = changed_stream_config(present, config)
    info = await update_stream(api, stream_of(bucket), changed, False, api.deadline(timeout))
    return ObjectStore(api, bucket, info)


async def create_or_update(
    api: Api, config: ObjectStoreConfig, timeout: Seconds | None
) -> ObjectStore:
    """Replace the settings of a store, or create it if it does not exist."""
    check_store_config(config)
    try:
        return await update(api, config, timeout)
    except ObjectStoreNotFound:
        pass
    try:
        return await create(api, config, timeout)
    except StreamExists:
        # Another client created the store first.
        return await update(api, config, timeout)


async def delete(api: Api, bucket: str, timeout: Seconds | None) -> None:
    """Delete a store with its objects."""
    try:
        await Stream(api, stream_of(bucket), None).delete(timeout=timeout)
    except StreamNotFound as error:
        raise _not_found(bucket, error) from error


async def _info(api: Api, bucket: str, timeout: Seconds | None) -> StreamInfo:
    try:
        return await api.stream_info(stream_of(bucket), api.deadline(timeout))
    except StreamNotFound as error:
        raise _not_found(bucket, error) from error


def _not_found(bucket: str, error: StreamNotFound) -> ObjectStoreNotFound:
    return ObjectStoreNotFound(
        f"there is no object store {bucket}",
        code=error.code,
        err_code=error.err_code,
        subject=error.subject,
    )


class Statuses(StatusesOfKind[ObjectStoreStatus]):
    """The status of each store."""

    def _has_name(self, stream: str) -> bool:
        return bucket_of(stream) is not None

    def _status(self, info: StreamInfo) -> ObjectStoreStatus | None:
        try:
            return ObjectStoreStatus.of(info)
        except NotAnObjectStore:
            return None


class Names(NamesOfKind):
    """The bucket of each store."""

    def _name(self, stream: str) -> str | None:
        return bucket_of(stream)

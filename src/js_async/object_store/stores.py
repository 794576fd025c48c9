"""Create, get, change, list and delete object stores."""

from __future__ import annotations

from typing import Final

from js_async.api.api import Api
from js_async.api.create_update import completed_stream, create_stream
from js_async.api.streams_of_kind import StatusesOfKind
from js_async.object_store.settings import change_store, store_info
from js_async.object_store.store import ObjectStore, place_of
from js_async.runtime.concurrency import sleep
from js_async.stream import Stream
from twinstream.core.deadline import Deadline, Seconds
from twinstream.core.object_store.config import (
    ObjectStoreStatus,
    check_store_config,
    store_config,
    store_status,
    store_stream_config,
)
from twinstream.core.object_store.names import bucket_of, stream_of
from twinstream.errors import BucketExists, BucketNotFound, NotABucket, StreamExists
from twinstream.errors.bucket import bucket_exists
from twinstream.errors.object_store import StoreErrors
from twinstream.models import ObjectStoreConfig, StreamInfo
from twinstream.records.difference import setting_differences

__all__ = ["Statuses", "create", "create_or_update", "delete", "get", "update"]

# Pause before `create_or_update` tries again (seconds).
_PAUSE: Final = 0.01


async def create(api: Api, config: ObjectStoreConfig, deadline: Deadline) -> ObjectStore:
    """Create a store, unless it exists with the same settings, and return it.

    Raises `BucketExists`, with the differences, if the store exists with other settings.
    """
    wanted = store_stream_config(config)
    try:
        info = await create_stream(api, stream_of(config.bucket), wanted, False, deadline)
    except StreamExists as error:
        try:
            info = await store_info(api, config.bucket, deadline)
        except BucketNotFound:
            # Another client deleted it after the first request.
            raise bucket_exists(config.bucket, "object_store", error, ()) from None
        completed = completed_stream(wanted, api.transport.server_info.version)
        found = setting_differences(store_config(completed), store_config(info.config))
        if found:
            raise bucket_exists(config.bucket, "object_store", error, found) from error
    return ObjectStore(api, config.bucket, info)


async def get(api: Api, bucket: str, deadline: Deadline) -> ObjectStore:
    """Return an existing store. Raises `BucketNotFound` or `NotABucket`."""
    info = await store_info(api, bucket, deadline)
    # This call raises `NotABucket` if the stream is not an object store.
    store_config(info.config)
    store = ObjectStore(api, bucket, info)
    if info.config.mirror is not None or info.config.sources:
        # This call raises `NotABucket` if the objects of a mirror or a copy are not found.
        await place_of(store)
    return store


async def update(api: Api, config: ObjectStoreConfig, deadline: Deadline) -> ObjectStore:
    """Replace the settings of an existing store, and return the store.

    Raises `BucketNotFound` or `NotABucket`.
    """
    bucket = check_store_config(config).bucket
    return ObjectStore(api, bucket, await change_store(api, bucket, lambda _: config, deadline))


async def create_or_update(api: Api, config: ObjectStoreConfig, deadline: Deadline) -> ObjectStore:
    """Replace the settings of a store, or create it if it does not exist, and return it.

    Another client may create or delete the store between the two requests. Then the function tries
    both again, until the deadline.
    """
    while True:
        try:
            return await update(api, config, deadline)
        except BucketNotFound:
            pass
        try:
            return await create(api, config, deadline)
        except BucketExists:
            if deadline.remaining() <= _PAUSE:
                raise
            await sleep(_PAUSE)


async def delete(api: Api, bucket: str, timeout: Seconds | None) -> None:
    """Delete a store with its objects. Raises `BucketNotFound`."""
    with StoreErrors(bucket):
        await Stream(api, stream_of(bucket), None).delete(timeout=timeout)


class Statuses(StatusesOfKind[ObjectStoreStatus]):
    """An iterator over the status of each store."""

    def _has_name(self, stream: str) -> bool:
        return bucket_of(stream) is not None

    def _status(self, info: StreamInfo) -> ObjectStoreStatus | None:
        try:
            return store_status(info)
        except NotABucket:
            return None

"""Create, get, change, list and delete object stores."""

from __future__ import annotations

from typing import Final

from js_async.api.api import Api
from js_async.api.create_update import completed_stream, create_stream, update_stream
from js_async.api.streams_of_kind import StatusesOfKind
from js_async.object_store.store import ObjectStore, place_of
from js_async.runtime.concurrency import sleep
from js_async.stream import Stream
from twinstream.core.deadline import Deadline, Seconds
from twinstream.core.object_store.config import (
    ObjectStoreStatus,
    changed_stream_config,
    check_store_config,
    store_config,
    store_stream_config,
)
from twinstream.core.object_store.names import bucket_of, stream_of
from twinstream.errors import NotAnObjectStore, ObjectStoreNotFound, StreamExists, StreamNotFound
from twinstream.models import ObjectStoreConfig, StreamInfo
from twinstream.records.difference import Difference, setting_differences

__all__ = ["Statuses", "create", "create_or_update", "delete", "get", "update"]

# Pause before `create_or_update` tries again (seconds).
_PAUSE: Final = 0.01


async def create(api: Api, config: ObjectStoreConfig, deadline: Deadline) -> ObjectStore:
    """Create a store, unless it exists with the same settings, and return it.

    Raises `StreamExists`, with the differences, if the store exists with other settings.
    """
    wanted = store_stream_config(config)
    try:
        info = await create_stream(api, stream_of(config.bucket), wanted, False, deadline)
    except StreamExists as error:
        try:
            info = await _info(api, config.bucket, deadline)
        except ObjectStoreNotFound:
            # Another client deleted it after the first request.
            raise error from None
        completed = completed_stream(wanted, api.transport.server_info.version)
        found = setting_differences(store_config(completed), store_config(info.config))
        if found:
            raise _exists(config.bucket, error, found) from error
    return ObjectStore(api, config.bucket, info)


def _exists(bucket: str, error: StreamExists, found: tuple[Difference, ...]) -> StreamExists:
    fixed = "storage" in {each.field for each in found}
    changes = "the storage of a store is fixed" if fixed else "update_object_store changes it"
    listed = "; ".join(map(str, found))
    exists = StreamExists(
        f"object store {bucket} exists with other settings: {listed}",
        code=error.code,
        err_code=error.err_code,
        subject=error.subject,
    )
    exists.differences = found
    exists._next = f"get_object_store opens it as it is, {changes}"
    return exists


async def get(api: Api, bucket: str, deadline: Deadline) -> ObjectStore:
    """Return an existing store. Raises `ObjectStoreNotFound` or `NotAnObjectStore`."""
    info = await _info(api, bucket, deadline)
    # This call raises `NotAnObjectStore` if the stream is not an object store.
    store_config(info.config)
    store = ObjectStore(api, bucket, info)
    if info.config.mirror is not None or info.config.sources:
        # This call raises `NotAnObjectStore` if the objects of a mirror or a copy are not found.
        await place_of(store)
    return store


async def update(api: Api, config: ObjectStoreConfig, deadline: Deadline) -> ObjectStore:
    """Replace the settings of an existing store, and return the store.

    Raises `ObjectStoreNotFound` or `NotAnObjectStore`.
    """
    bucket = check_store_config(config).bucket
    present = (await _info(api, bucket, deadline)).config
    store_config(present)
    changed = changed_stream_config(present, config)
    try:
        info = await update_stream(api, stream_of(bucket), changed, False, deadline)
    except StreamNotFound as error:
        raise _not_found(bucket, error) from error
    return ObjectStore(api, bucket, info)


async def create_or_update(api: Api, config: ObjectStoreConfig, deadline: Deadline) -> ObjectStore:
    """Replace the settings of a store, or create it if it does not exist, and return it.

    Another client may create or delete the store between the two requests. Then the function tries
    both again, until the deadline.
    """
    while True:
        try:
            return await update(api, config, deadline)
        except ObjectStoreNotFound:
            pass
        try:
            return await create(api, config, deadline)
        except StreamExists:
            if deadline.remaining() <= _PAUSE:
                raise
            await sleep(_PAUSE)


async def delete(api: Api, bucket: str, timeout: Seconds | None) -> None:
    """Delete a store with its objects. Raises `ObjectStoreNotFound`."""
    try:
        await Stream(api, stream_of(bucket), None).delete(timeout=timeout)
    except StreamNotFound as error:
        raise _not_found(bucket, error) from error


async def _info(api: Api, bucket: str, deadline: Deadline) -> StreamInfo:
    try:
        return await api.stream_info(stream_of(bucket), deadline)
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
    """An iterator over the status of each store."""

    def _has_name(self, stream: str) -> bool:
        return bucket_of(stream) is not None

    def _status(self, info: StreamInfo) -> ObjectStoreStatus | None:
        try:
            return ObjectStoreStatus.of(info)
        except NotAnObjectStore:
            return None

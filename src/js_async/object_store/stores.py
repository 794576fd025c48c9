"""Create, get, change, list and delete object stores."""

from __future__ import annotations

from typing import Final

from js_async.api.api import Api
from js_async.api.create_update import create_stream, update_stream
from js_async.api.streams_of_kind import NamesOfKind, StatusesOfKind
from js_async.object_store.store import ObjectStore
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
from twinstream.core.object_store.errors import NotAnObjectStore, ObjectStoreNotFound
from twinstream.core.object_store.names import bucket_of, stream_of
from twinstream.errors import StreamExists, StreamNotFound
from twinstream.models import ObjectStoreConfig, StreamInfo

__all__ = ["Names", "Statuses", "create", "create_or_update", "delete", "get", "update"]

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
        error._next = "get_object_store opens it as it is, update_object_store changes it"
        raise
    return ObjectStore(api, config.bucket, info)


async def get(api: Api, bucket: str, deadline: Deadline) -> ObjectStore:
    """Return an existing store. Raises `ObjectStoreNotFound` or `NotAnObjectStore`."""
    info = await _info(api, bucket, deadline)
    # This call raises `NotAnObjectStore` if the stream is not an object store.
    store_config(info.config)
    return ObjectStore(api, bucket, info)


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

    Another client may create the store between the two requests. Then the function tries both
    again, until the deadline.
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


class Names(NamesOfKind):
    """An iterator over the names of the stores."""

    def _name(self, stream: str) -> str | None:
        return bucket_of(stream)

"""Read and change the settings of an object store."""

from __future__ import annotations

from collections.abc import Callable

from js_async.api.api import Api
from js_async.api.create_update import update_stream
from twinstream.core.deadline import Deadline
from twinstream.core.object_store.config import (
    changed_stream_config,
    check_store_config,
    store_config,
)
from twinstream.core.object_store.names import stream_of
from twinstream.errors import BadArgument
from twinstream.errors.object_store import StoreErrors
from twinstream.models import ObjectStoreConfig, StreamInfo

__all__ = ["change_store", "store_info"]


async def store_info(api: Api, bucket: str, deadline: Deadline) -> StreamInfo:
    """Request the info of the stream of a store. Raises `BucketNotFound`."""
    with StoreErrors(bucket):
        return await api.stream_info(stream_of(bucket), deadline)


async def change_store(
    api: Api,
    bucket: str,
    edit: Callable[[ObjectStoreConfig], ObjectStoreConfig],
    deadline: Deadline,
) -> StreamInfo:
    """Pass the settings of a store to `edit`, store its result, and return the stream's info.

    Raises `BucketNotFound` or `NotABucket`, and `BadArgument` if `edit` returns no valid settings.
    """
    info = await store_info(api, bucket, deadline)
    after = check_store_config(edit(store_config(info.config)))
    if after.bucket != bucket:
        raise BadArgument(f"a bucket cannot be renamed, from {bucket} to {after.bucket}")
    changed = changed_stream_config(info.config, after)
    if changed == info.config:
        return info
    with StoreErrors(bucket):
        return await update_stream(api, stream_of(bucket), changed, False, deadline)

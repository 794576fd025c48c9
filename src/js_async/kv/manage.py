"""Create, read, change, delete and list buckets."""

from __future__ import annotations

from typing import Final

from js_async.api.api import Api
from js_async.api.create_update import create_stream, update_stream
from js_async.api.streams_of_kind import NamesOfKind, StatusesOfKind
from js_async.kv.place import Place
from js_async.runtime.concurrency import sleep
from js_async.stream import Stream
from twinstream.core.deadline import Deadline, Seconds
from twinstream.core.kv.config import (
    Edit,
    changed_stream,
    check_is_bucket,
    key_value_config,
    merged,
    stream_config,
)
from twinstream.core.kv.errors import BucketExists, BucketNotFound, NotABucket, raise_for_bucket
from twinstream.core.kv.names import PREFIX, bucket_of, stream_of
from twinstream.core.kv.status import KeyValueStatus
from twinstream.errors import BadArgument, StreamExists, StreamNotFound, TwinstreamError
from twinstream.models import KeyValueConfig, StreamInfo

__all__ = [
    "BucketNames",
    "Buckets",
    "change_bucket",
    "create_bucket",
    "create_or_update_bucket",
    "delete_bucket",
    "get_bucket",
    "update_bucket",
]

_LIMIT_MARKERS_SINCE: Final = (2, 11, 0)
# Pause before `create_or_update_bucket` tries again (seconds).
_PAUSE: Final = 0.01


async def create_bucket(api: Api, config: KeyValueConfig, deadline: Deadline) -> Place:
    """Create a bucket, unless it exists with the same settings, and return its `Place`.

    Raises `BucketExists` if the bucket exists with other settings.
    """
    wanted = stream_config(config)
    name = wanted.name or ""
    if config.limit_marker_ttl:
        api.require(_LIMIT_MARKERS_SINCE, "limit_marker_ttl")
    try:
        await create_stream(api, name, wanted, False, deadline)
    except StreamExists as error:
        raise _exists(config.bucket, error) from error
    # The response to the creation lacks the domain, so the info is requested.
    return await get_bucket(api, config.bucket, deadline)


def _exists(bucket: str, error: StreamExists) -> BucketExists:
    because = "; ".join(map(str, error.differences)) or error.description
    found = BucketExists(
        f"bucket {bucket} exists with other settings: {because}; update_key_value changes them",
        code=error.code,
        err_code=error.err_code,
        subject=error.subject,
    )
    found.differences = error.differences
    return found


async def get_bucket(api: Api, bucket: str, deadline: Deadline) -> Place:
    """Request the info of a bucket and return the bucket's `Place`.

    Raises `BucketNotFound`, or `NotABucket` if the stream does not have the layout of a bucket.
    """
    info = await _info(api, bucket, deadline)
    check_is_bucket(info.config)
    return Place(api, bucket, info)


async def _info(api: Api, bucket: str, deadline: Deadline) -> StreamInfo:
    name = stream_of(bucket)
    try:
        return await api.stream_info(name, deadline)
    except TwinstreamError as error:
        raise_for_bucket(bucket, error)


async def update_bucket(api: Api, config: KeyValueConfig, deadline: Deadline) -> Place:
    """Change the settings that are not None in `config`, and return the bucket's `Place`.

    Raises `BucketNotFound`.
    """
    stream_config(config)
    return await change_bucket(
        api, config.bucket, lambda current: merged(current, config), deadline
    )


async def change_bucket(api: Api, bucket: str, edit: Edit, deadline: Deadline) -> Place:
    """Pass the settings of a bucket to `edit`, store its result, and return the `Place`.

    Raises `BucketNotFound`, and `BadArgument` if `edit` returns no valid settings.
    """
    place = await get_bucket(api, bucket, deadline)
    stream = place.stream.config
    before = key_value_config(stream)
    after = edit(before)
    if not isinstance(after, KeyValueConfig):
        raise BadArgument(
            "edit must return the changed settings, as twinstream.models.evolve(config, ...) does;"
            f" it returned {after!r:.80}"
        )
    changed = changed_stream(stream, before, after)
    if after.limit_marker_ttl:
        api.require(_LIMIT_MARKERS_SINCE, "limit_marker_ttl")
    if changed != stream:
        try:
            await update_stream(api, place.stream.name, changed, False, deadline)
        except TwinstreamError as error:
            raise_for_bucket(bucket, error)
        place = await get_bucket(api, bucket, deadline)
    return place


async def create_or_update_bucket(api: Api, config: KeyValueConfig, deadline: Deadline) -> Place:
    """Update a bucket, or create it if it does not exist, and return its `Place`.

    Another client may create or delete the bucket between the two requests. Then the function tries
    both again, until the deadline.
    """
    while True:
        try:
            return await update_bucket(api, config, deadline)
        except BucketNotFound:
            pass
        try:
            return await create_bucket(api, config, deadline)
        except (BucketExists, BucketNotFound):
            if deadline.remaining() <= _PAUSE:
                raise
            await sleep(_PAUSE)


async def delete_bucket(api: Api, bucket: str, timeout: Seconds | None) -> None:
    """Delete a bucket. Raises `BucketNotFound`."""
    try:
        await Stream(api, stream_of(bucket), None).delete(timeout=timeout)
    except StreamNotFound as error:
        raise_for_bucket(bucket, error)


class Buckets(StatusesOfKind[KeyValueStatus]):
    """An iterator over the status of each bucket."""

    def _has_name(self, stream: str) -> bool:
        return stream.startswith(PREFIX)

    def _status(self, info: StreamInfo) -> KeyValueStatus | None:
        try:
            return KeyValueStatus.of(info)
        except NotABucket:
            return None


class BucketNames(NamesOfKind):
    """An iterator over the names of the buckets."""

    def _name(self, stream: str) -> str | None:
        return bucket_of(stream) if stream.startswith(PREFIX) else None

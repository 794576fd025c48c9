"""Create, read, change, delete and list buckets."""

from __future__ import annotations

from typing import Final

from js_async.api.api import Api
from js_async.api.create_update import completed_stream, create_stream, edited, update_stream
from js_async.api.streams_of_kind import StatusesOfKind
from js_async.kv.bucket_streams import BucketStreams
from js_async.read.origins import check_visible, origins_of
from js_async.runtime.concurrency import sleep
from js_async.stream import Stream, known_info
from twinstream.core.deadline import Deadline, Seconds
from twinstream.core.kv.config import (
    Edit,
    changed_stream,
    check_is_bucket,
    key_value_config,
    stream_config,
)
from twinstream.core.kv.names import PREFIX, KeySubjects, bucket_of, stream_of
from twinstream.core.kv.status import KeyValueStatus, key_value_status
from twinstream.errors import (
    BadArgument,
    BucketExists,
    BucketNotFound,
    NotABucket,
    StreamExists,
    StreamNotFound,
    TwinstreamError,
)
from twinstream.errors.bucket import bucket_exists
from twinstream.errors.kv import raise_for_bucket
from twinstream.models import KeyValueConfig, StreamConfig, StreamInfo, StreamSource, evolve
from twinstream.models.buckets.streams import key_value_source
from twinstream.records.difference import setting_differences

__all__ = [
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


async def create_bucket(api: Api, config: KeyValueConfig, deadline: Deadline) -> BucketStreams:
    """Create a bucket, unless it exists with the same settings, and return its `BucketStreams`.

    Raises `BucketExists` if the bucket exists with other settings.
    """
    stream_config(config)
    await _check_named_clearly(api, config, deadline)
    wanted = stream_config(await _followed(api, config, deadline))
    if await _copies_ttls(api, wanted, deadline):
        wanted = evolve(wanted, allow_msg_ttl=True)
    name = wanted.name or ""
    if config.limit_marker_ttl:
        api.require(_LIMIT_MARKERS_SINCE, "limit_marker_ttl")
    try:
        await create_stream(api, name, wanted, False, deadline)
    except StreamExists as error:
        await _check_equal(api, config, wanted, error, deadline)
    # The response to the creation lacks the domain, so the info is requested.
    return await get_bucket(api, config.bucket, deadline)


async def _check_equal(
    api: Api,
    config: KeyValueConfig,
    wanted: StreamConfig,
    error: StreamExists,
    deadline: Deadline,
) -> None:
    """Raise `BucketExists` if an existing bucket has other settings than `config`.

    Settings that only its stream has do not count: another client may have chosen them, or an
    earlier change of the bucket.
    """
    try:
        actual = (await _info(api, config.bucket, deadline)).config
    except BucketNotFound:
        raise bucket_exists(config.bucket, "key_value", error, ()) from None
    found = setting_differences(
        key_value_config(completed_stream(wanted, api.transport.server_info.version)),
        key_value_config(actual),
    )
    if found:
        raise bucket_exists(config.bucket, "key_value", error, found) from error


async def get_bucket(api: Api, bucket: str, deadline: Deadline) -> BucketStreams:
    """Request the info of a bucket and return the bucket's `BucketStreams`.

    Raises `BucketNotFound`, or `NotABucket` if the stream does not have the layout of a bucket.
    """
    info = await _info(api, bucket, deadline)
    check_is_bucket(info.config)
    origins = await origins_of(api, info.config, deadline)
    place = BucketStreams(api, bucket, info, origins)
    if info.config.mirror is not None or info.config.sources:
        await check_visible(api, info, origins, place.subjects.stored, f"bucket {bucket}", deadline)
    return place


async def _check_named_clearly(api: Api, config: KeyValueConfig, deadline: Deadline) -> None:
    """Raise `BadArgument` if the name of a mirror or source is that of a bucket and of a stream.

    `KV_x` is the stream of bucket `x`. A bucket `KV_x` has the stream `KV_KV_x`.
    """
    for each in (*([config.mirror] if config.mirror else ()), *(config.sources or ())):
        name = each.name or ""
        if each.subject_transforms or not name.startswith(PREFIX) or name.startswith(PREFIX * 2):
            continue
        found = await origins_of(
            api, StreamConfig(mirror=evolve(each, name=f"{PREFIX}{name}")), deadline
        )
        if found:
            raise BadArgument(
                f"{name} is the stream of bucket {bucket_of(name)}, and there is a bucket {name}:"
                f" name the first one {bucket_of(name)!r} or the second one {PREFIX + name!r}"
            )


async def _copies_ttls(api: Api, config: StreamConfig, deadline: Deadline) -> bool:
    """Return whether a mirrored or copied stream has messages with a TTL.

    A copy keeps expired messages forever unless it allows TTLs, too.
    """
    for each in (*([config.mirror] if config.mirror else ()), *(config.sources or ())):
        found = await origins_of(api, StreamConfig(mirror=each), deadline)
        if found and found[0].allow_msg_ttl:
            return True
    return False


async def _followed(api: Api, config: KeyValueConfig, deadline: Deadline) -> KeyValueConfig:
    """Return the settings with the transforms of those sources that are mirrors.

    A mirror stores the subjects of its origin, so a transform of its own subjects copies nothing.
    """
    sources: list[StreamSource] = []
    for each in config.sources or ():
        stored = None
        if not each.subject_transforms:
            source = key_value_source(each, config.bucket)
            streams = await origins_of(api, StreamConfig(mirror=source), deadline)
            if streams and streams[0].mirror is not None:
                stored = KeySubjects.of(streams[0], "", streams[1:]).stored
        sources.append(each if stored is None else key_value_source(each, config.bucket, stored))
    return evolve(config, sources=sources) if sources else config


async def _info(api: Api, bucket: str, deadline: Deadline) -> StreamInfo:
    name = stream_of(bucket)
    try:
        return await api.stream_info(name, deadline)
    except TwinstreamError as error:
        raise_for_bucket(bucket, error)


async def update_bucket(api: Api, config: KeyValueConfig, deadline: Deadline) -> BucketStreams:
    """Replace the settings of a bucket, and return its `BucketStreams`.

    A mirror stays a mirror, also without `mirror` in `config`. Raises `BucketNotFound`.
    """
    stream_config(config)

    def replaced(current: KeyValueConfig) -> KeyValueConfig:
        return config if config.mirror else evolve(config, mirror=current.mirror)

    return await change_bucket(api, config.bucket, replaced, deadline)


async def change_bucket(api: Api, bucket: str, edit: Edit, deadline: Deadline) -> BucketStreams:
    """Pass the settings of a bucket to `edit`, store its result, and return the `BucketStreams`.

    Raises `BucketNotFound`, and `BadArgument` if `edit` returns no valid settings.
    """
    place = await get_bucket(api, bucket, deadline)
    stream = known_info(place.stream).config
    before = key_value_config(stream)
    after = edited(before, edit)
    if before.mirror is not None and after.mirror is None:
        _check_promoted(place)
    if after.sources != before.sources:
        after = await _followed(api, after, deadline)
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


def _check_promoted(place: BucketStreams) -> None:
    """Raise `BadArgument` if the keys of a mirror would be hidden after it became a bucket."""
    stored, own = place.subjects.stored, f"$KV.{place.bucket}."
    if stored != own:
        raise BadArgument(
            f"mirror {place.bucket} cannot become a bucket of its own: its revisions have the"
            f" subjects {stored}> and would be hidden, because a bucket reads {own}>. Create"
            f" another bucket with sources=[StreamSource(name={place.bucket!r})] instead"
        )


async def create_or_update_bucket(
    api: Api, config: KeyValueConfig, deadline: Deadline
) -> BucketStreams:
    """Update a bucket, or create it if it does not exist, and return its `BucketStreams`.

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
            return key_value_status(info)
        except NotABucket:
            return None

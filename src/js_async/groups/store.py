"""The stored configuration of a consumer group: read, create, change and delete it."""

from __future__ import annotations

from collections.abc import Callable
from typing import Final, Generic, TypeVar

from js_async import JetStream, KeyValue
from js_async.extension import api_of
from js_async.runtime.concurrency import Items, sleep
from twinstream.core.deadline import Deadline, Seconds
from twinstream.core.groups.config import config_bytes, differences, read_config
from twinstream.core.groups.info import GroupInfo
from twinstream.core.groups.names import BUCKETS, GroupKind, GroupNames, group_of_key
from twinstream.errors import (
    BucketExists,
    BucketNotFound,
    GroupExists,
    GroupNotFound,
    InvalidGroupConfig,
    KeyExists,
    RevisionMismatch,
)
from twinstream.models import ElasticGroupConfig, KeyValueConfig, StaticGroupConfig, StorageType
from twinstream.records.entry import Entry

__all__ = ["GroupStore", "group_names"]

C = TypeVar("C", StaticGroupConfig, ElasticGroupConfig)

# Pause before an `edit` is retried, after another client changed the group (seconds).
_PAUSE: Final = 0.01


class GroupStore(Generic[C]):
    """The configuration of a group, which is stored in a key of a bucket."""

    def __init__(self, jet: JetStream, names: GroupNames, cls: type[C]) -> None:
        self._jet: Final = jet
        self._names: Final = names
        self._cls: Final[type[C]] = cls

    @property
    def bucket(self) -> KeyValue[bytes]:
        """A new handle of the bucket.

        A new handle has no cached stream info. So it reads from the stream's leader, and its
        results are current.
        """
        return self._jet.bind_key_value(self._names.bucket)

    def judge(self, entry: Entry[bytes] | None) -> C | InvalidGroupConfig | None:
        """Return the configuration in an entry, or an error if it is invalid.

        Returns None if the entry is None or a marker.
        """
        if entry is None or not entry.is_value:
            return None
        try:
            return read_config(self._names, entry.value or b"", self._cls)
        except InvalidGroupConfig as error:
            return error

    async def find(self, deadline: Deadline) -> C | InvalidGroupConfig | None:
        """Return the configuration, an error if it is invalid, or None if there is no group."""
        return self.judge(await self._entry(deadline))

    async def _entry(self, deadline: Deadline) -> Entry[bytes] | None:
        try:
            return await self.bucket.entry(self._names.key, timeout=deadline.remaining())
        except BucketNotFound:
            return None

    async def read(self, deadline: Deadline) -> GroupInfo[C]:
        """Return the configuration and its revision.

        Raises `GroupNotFound` or `InvalidGroupConfig`.
        """
        entry = await self._entry(deadline)
        found = self.judge(entry)
        if entry is None or found is None:
            raise self.missing()
        if isinstance(found, InvalidGroupConfig):
            raise found
        return GroupInfo(found, entry.revision)

    def missing(self) -> GroupNotFound:
        """Return the error for a group that does not exist."""
        return GroupNotFound(f"there is no {self._names}: create makes it")

    async def create(self, config: C, replicas: int | None, deadline: Deadline) -> GroupInfo[C]:
        """Store the configuration of a new group.

        If the group exists with the same settings, the existing configuration is returned. Raises
        `GroupExists` if the settings differ.
        """
        await self._make_bucket(replicas, deadline)
        key, remaining = self._names.key, deadline.remaining()
        try:
            revision = await self.bucket.create(key, config_bytes(config), timeout=remaining)
        except KeyExists:
            return await self.check_same(config, deadline)
        return GroupInfo(config, revision)

    async def check_same(self, config: C, deadline: Deadline) -> GroupInfo[C]:
        """Return the existing group.

        Raises `GroupExists` if it differs from `config` in settings that cannot be changed.
        """
        info = await self.read(deadline)
        wrong = differences(info.config, config)
        if wrong:
            raise GroupExists(
                f"{self._names} exists with other settings: {', '.join(wrong)}; they cannot be"
                " changed, only the whole group deleted and created again"
            )
        return info

    async def _make_bucket(self, replicas: int | None, deadline: Deadline) -> None:
        """Create the bucket if it does not exist, with the settings that other clients use."""
        bucket = self._names.bucket
        try:
            await self._jet.get_key_value(bucket, timeout=deadline.remaining())
        except BucketNotFound:
            config = KeyValueConfig(
                bucket=bucket, num_replicas=replicas, storage=StorageType.FILE, history=1
            )
            try:
                await self._jet.create_key_value(config, timeout=deadline.remaining())
            except BucketExists:
                # Another client has just created the bucket with other settings.
                return

    async def edit(self, change: Callable[[C], C], deadline: Deadline) -> GroupInfo[C]:
        """Apply `change` to the configuration, store the result, and return it.

        If another client changes the configuration at the same time, the change is applied again to
        the newer configuration, until the deadline.
        """
        while True:
            before = await self.read(deadline)
            after = change(before.config)
            if after == before.config:
                return before
            try:
                revision = await self.bucket.update(
                    self._names.key,
                    config_bytes(after),
                    before.revision,
                    timeout=deadline.remaining(),
                )
            except RevisionMismatch:
                if deadline.remaining() <= _PAUSE:
                    raise
                await sleep(_PAUSE)
            else:
                return GroupInfo(after, revision)

    async def delete(self, deadline: Deadline) -> None:
        """Delete the key. The workers of all members then end."""
        await self.bucket.delete(self._names.key, timeout=deadline.remaining())


async def group_names(
    jet: JetStream, kind: GroupKind, stream: str, timeout: Seconds | None
) -> Items[str]:
    """Iterate over the names of the groups of a stream. `timeout` is without progress."""
    within = api_of(jet).deadline(timeout).remaining()
    bucket = jet.bind_key_value(BUCKETS[kind])
    try:
        async for key in bucket.keys(f"{stream}.*", idle_timeout=within):
            yield group_of_key(key)
    except BucketNotFound:
        # The bucket does not exist, so no group was ever created.
        return

"""Partitioned consumer groups: create, change and delete them, and work as a member."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable, Mapping
from contextlib import suppress
from operator import attrgetter
from typing import TYPE_CHECKING, Any, Final, Generic, Literal, TypeVar, cast

from js_async import JetStream
from js_async.extension import api_of
from js_async.groups.group_worker import GroupWorker
from js_async.groups.member_join import delete_own_consumer
from js_async.groups.message import GroupMessage
from js_async.groups.store import GroupStore, group_names
from js_async.runtime.concurrency import Handler, Items
from js_async.runtime.opening import looped
from js_async.workers.settings import WorkSettings
from twinstream.core.arguments.check_arguments import check_kind, check_whole
from twinstream.core.consume.pull_request import Priority
from twinstream.core.deadline import Deadline, Seconds
from twinstream.core.groups.config import (
    check_group_config,
    member_names,
    with_mappings,
    with_members,
    without_mappings,
    without_members,
)
from twinstream.core.groups.elastic_stream import (
    WHOLE_SUBJECT_SINCE,
    group_stream,
    is_of_group,
    only_copies,
    uses_whole_subject,
)
from twinstream.core.groups.info import GroupInfo
from twinstream.core.groups.member_consumer import PRIORITY_GROUP, check_template
from twinstream.core.groups.names import GroupKind, GroupNames
from twinstream.core.groups.partitions import filters_of, members_of
from twinstream.core.groups.reports import GroupReport
from twinstream.core.workers.reports import WorkReport
from twinstream.core.workers.retry import RETRY, Retry
from twinstream.errors import BadArgument, InvalidGroupConfig, StreamNotFound
from twinstream.models import ElasticGroupConfig, StaticGroupConfig

if TYPE_CHECKING:
    from js_async.workers.dead_letters import DeadLetters
    from js_async.workers.settings import KeyOf, OnBad
    from twinstream.models import ConsumerConfig, StreamInfo

__all__ = [
    "ConsumerGroup",
    "ElasticGroup",
    "GroupOrder",
    "StaticGroup",
    "elastic_groups",
    "static_groups",
]

C = TypeVar("C", StaticGroupConfig, ElasticGroupConfig)

GroupOrder = Literal["partition", "none", "subject", "total"] | Callable[[GroupMessage], Hashable]
"""Which messages are handled sequentially.

`"partition"`: the messages of one partition; `"subject"`: the messages of one subject; `"total"`:
all messages; `"none"`: no messages; a function that returns a key: the messages with the same key.
"""

# The first server with pinned clients (ADR-42).
_SINCE: Final = (2, 11, 0)
_BY_PARTITION: Final = cast("KeyOf", attrgetter("_partition"))


class ConsumerGroup(Generic[C]):
    """The base class of the two kinds of consumer groups. Creating an object sends no request."""

    _kind: GroupKind
    _cls: type[C]

    def __init__(self, jet: JetStream, stream_name: str, group_name: str) -> None:
        self._api: Final = api_of(jet)
        self._jet: Final = jet
        self._names: Final = GroupNames.of(self._kind, stream_name, group_name)
        self._store: Final[GroupStore[C]] = GroupStore(jet, self._names, self._cls)

    def __repr__(self) -> str:
        return f"<{type(self).__name__} {self._names.stream}/{self._names.group}>"

    @property
    def name(self) -> str:
        """The name of the group."""
        return self._names.group

    @property
    def stream_name(self) -> str:
        """The name of the stream whose messages the group consumes."""
        return self._names.stream

    @property
    def source_stream_name(self) -> str:
        """The name of the stream that has the consumers of the members.

        For a static group it is `stream_name`, for an elastic group the group's own stream.
        """
        return self._names.source

    async def info(self, *, timeout: Seconds | None = None) -> GroupInfo[C]:
        """Return the settings and members of the group.

        Raises `GroupNotFound`, or `InvalidGroupConfig` if the stored settings are invalid.

        Args:
            timeout: Seconds for the whole call; the default is that of the JetStream context.
        """
        return await self._store.read(self._api.deadline(timeout))

    async def step_down(self, member: str, *, timeout: Seconds | None = None) -> None:
        """Unpin the active instance of a member, so that the server pins another instance.

        If the member has only one instance, the server pins it again. Raises `ConsumerNotFound` if
        the member has no consumer.

        Args:
            member: Name of the member.
            timeout: Seconds for the whole call; the default is that of the JetStream context.
        """
        consumer = self._jet.bind_consumer(self._names.source, self._names.consumer(member))
        await consumer.unpin(PRIORITY_GROUP, timeout=timeout)

    async def active_members(self, *, timeout: Seconds | None = None) -> list[str]:
        """Return the names of the members that have an instance.

        For an elastic group, the result also includes members whose last instance ended less than
        `ack_wait` ago, because their consumers still exist. `timeout` (seconds) is for each
        request. Raises `GroupNotFound`.
        """
        members = (await self.info(timeout=timeout)).members
        consumers = self._jet.bind_stream(self._names.source).consumers(timeout=timeout)
        active = {
            info.name async for info in consumers if info.num_waiting or self._kind == "elastic"
        }
        return [member for member in members if self._names.consumer(member) in active]

    def worker(
        self,
        member: str,
        handler: Handler[GroupMessage[Any]],
        *,
        concurrency: int = 1,
        order: GroupOrder = "partition",
        retry: Retry = RETRY,
        dead_letters: DeadLetters | None = None,
        on_bad: OnBad | None = None,
        config: ConsumerConfig | None = None,
        on_report: Callable[[GroupReport], None] | None = None,
    ) -> GroupWorker:
        """Return a worker that handles the messages of a member's partitions.

        Args:
            member: Name of the member. Several processes may work as the same member: one is
                active, the other processes stand by.
            handler: Function to call with each message. The message's `subject` does not include
                the partition. If its annotation is `GroupMessage[Order]`, the messages have a
                `payload` of type `Order`.
            concurrency: Maximum number of handlers that run at the same time.
            order: Which messages are handled sequentially; by default the messages of a partition,
                which include all messages of a key.
            retry: When to retry, and how often.
            dead_letters: Where to store messages that are not retried any more.
            on_bad: What to do with a message whose payload does not fit the type of the handler;
                see `Worker`.
            config: Settings of the member's consumer, the same for all instances. `ack_wait`, by
                default 5 seconds, is the time until another instance replaces one that was killed.
                `max_ack_pending`, by default 100, limits the messages in progress. After an
                instance was replaced, these messages may be processed twice. With 1, the order is
                strict. The group itself sets the names, the filters, the priority settings and, if
                the group is elastic, the `inactive_threshold`.
            on_report: Callback that receives reports.

        Raises:
            BadArgument: An argument is invalid, or the annotation of the handler.
            Unsupported: The server is older than 2.11.
        """
        self._api.require(_SINCE, "a consumer group")
        template = check_template(self._names, config)
        by = _BY_PARTITION if order == "partition" else cast("KeyOf", order)
        settings = WorkSettings(
            concurrency=concurrency,
            order=by,
            retry=retry,
            dead_letters=dead_letters,
            # The server delivers at most `max_ack_pending` unacknowledged messages. The buffer is
            # larger, so the worker keeps pulling while handlers run. So the server keeps this
            # instance pinned.
            max_messages=(template.max_ack_pending or 0) + check_whole(concurrency, "concurrency"),
            priority=Priority(group=PRIORITY_GROUP),
            on_report=cast("Callable[[WorkReport], None] | None", on_report),
            on_bad=on_bad,
        )
        return GroupWorker(
            self._jet, self._names, self._store, member, handler, settings, template, on_report
        )

    async def _info(self, stream_name: str, deadline: Deadline) -> StreamInfo:
        return await self._jet.bind_stream(stream_name).info(timeout=deadline.remaining())

    def _checked(self, config: C) -> C:
        self._api.require(_SINCE, "a consumer group")
        check_kind(config, self._cls, "config", f"a {self._cls.__name__}")
        return check_group_config(config)


class StaticGroup(ConsumerGroup[StaticGroupConfig]):
    """A partitioned consumer group with fixed members.

    The first token of each stored subject is the partition: use a stream whose `subject_transform`
    adds it. Each member has a durable consumer. Needs server 2.11.

    Args:
        jet: The JetStream context.
        stream_name: Name of the stream.
        group_name: Name of the group.
    """

    _kind = "static"
    _cls = StaticGroupConfig

    async def create(
        self, config: StaticGroupConfig, *, timeout: Seconds | None = None
    ) -> GroupInfo[StaticGroupConfig]:
        """Create the group, unless it exists with the same settings, and return its info.

        Args:
            config: The settings.
            timeout: Seconds for the whole call; the default is that of the JetStream context.

        Raises:
            GroupExists: The group exists with other settings.
            StreamNotFound: The stream does not exist.
            Unsupported: The server is older than 2.11.
            BadArgument: A setting is invalid.
        """
        self._checked(config)
        if not members_of(config):
            raise BadArgument("a static group needs members or member_mappings: it has no others")
        deadline = self._api.deadline(timeout)
        stream = await self._info(self._names.stream, deadline)
        return await self._store.create(config, stream.config.num_replicas, deadline)

    async def delete(self, *, timeout: Seconds | None = None) -> None:
        """Delete the group and the consumers of its members. The workers of the members then end.

        A consumer with other settings than the group gives it is kept, because any client may have
        stored its name as that of a member.

        Args:
            timeout: Seconds for the whole call; the default is that of the JetStream context.

        Raises:
            GroupNotFound: The group does not exist.
            InvalidGroupConfig: The group is deleted, but consumers were kept. The error names them.
        """
        deadline = self._api.deadline(timeout)
        found = await self._store.find(deadline)
        if found is None:
            raise self._store.missing()
        await self._store.delete(deadline)
        if isinstance(found, InvalidGroupConfig):
            return
        kept: list[str] = []
        for member in members_of(found):
            filters = filters_of(found, member)
            name = await delete_own_consumer(self._jet, self._names, member, filters, deadline)
            kept += [] if name is None else [name]
        if kept:
            raise InvalidGroupConfig(
                f"{self._names} is deleted, but not the consumers {', '.join(map(repr, kept))}"
                f" of {self._names.source}: the group did not create them; delete them with"
                " Stream.delete_consumer"
            )


class ElasticGroup(ConsumerGroup[ElasticGroupConfig]):
    """A partitioned consumer group whose members may change.

    The group has a stream named `STREAM-GROUP`, which copies the messages of the original stream
    and adds the partition to their subjects. Each member has a consumer of the group's stream.
    Needs server 2.11.

    Args:
        jet: The JetStream context.
        stream_name: Name of the stream.
        group_name: Name of the group.
    """

    _kind = "elastic"
    _cls = ElasticGroupConfig

    async def create(
        self, config: ElasticGroupConfig, *, timeout: Seconds | None = None
    ) -> GroupInfo[ElasticGroupConfig]:
        """Create the group and its stream, and return the group's info.

        If the group exists with the same settings, its info with the present members is returned.
        If the stream of an existing group is missing, it is created. Members may also be added
        later.

        Args:
            config: The settings.
            timeout: Seconds for the whole call; the default is that of the JetStream context.

        Raises:
            GroupExists: The group exists with other settings.
            StreamExists: Another stream has the name of the group's stream.
            StreamNotFound: The stream does not exist.
            Unsupported: The server is older than 2.11, or than 2.12 if the key is the whole
                subject.
            BadArgument: A setting is invalid.
        """
        self._checked(config)
        deadline = self._api.deadline(timeout)
        found = await self._store.find(deadline)
        if found is not None:
            info = await self._store.check_same(config, deadline)
            await self._info(self._names.stream, deadline)
            if not await self._has_stream(deadline):
                await self._make_stream(info.config, deadline)
            return info
        # The stream is created before the key, because workers start as soon as the key exists.
        replicas = await self._make_stream(config, deadline)
        return await self._store.create(config, replicas, deadline)

    async def _check_pending(self, deadline: Deadline) -> None:
        """Raise `UnsuitableSettings` if only the group's stream still has some messages."""
        try:
            info = await self._info(self._names.source, deadline)
        except StreamNotFound:
            return
        count = info.state.messages
        if not count:
            return
        try:
            origin = await self._info(self._names.stream, deadline)
        except StreamNotFound:
            raise only_copies(self._names, count, None) from None
        if origin.config.retention != "limits":
            raise only_copies(self._names, count, origin.config.retention)

    async def _has_stream(self, deadline: Deadline) -> bool:
        try:
            await self._info(self._names.source, deadline)
        except StreamNotFound:
            return False
        return True

    async def _make_stream(self, config: ElasticGroupConfig, deadline: Deadline) -> int | None:
        """Create the group's stream; return the number of replicas of the original stream."""
        if uses_whole_subject(config):
            self._api.require(WHOLE_SUBJECT_SINCE, "partitioning by the whole subject")
        source = (await self._info(self._names.stream, deadline)).config
        wanted = group_stream(self._names, config, source)
        await self._jet.create_stream(wanted, timeout=deadline.remaining())
        return source.num_replicas

    async def add_members(
        self, members: str | Iterable[str], *, timeout: Seconds | None = None
    ) -> list[str]:
        """Add one member or several, and return the names of all members.

        The partitions are distributed among all members.

        Raises `GroupNotFound`, and `BadArgument` if the members are mapped to partitions.

        Args:
            members: Name of one member, or several names.
            timeout: Seconds for the whole call; the default is that of the JetStream context.
        """
        added = member_names(members)
        return await self._edit(lambda config: with_members(config, added), timeout)

    async def remove_members(
        self, members: str | Iterable[str], *, timeout: Seconds | None = None
    ) -> list[str]:
        """Remove one member or several, and return the names of the remaining members.

        The partitions are distributed among the remaining members. If the process of a removed
        member was killed, its partitions become available when the member's consumer has been
        inactive for `ack_wait`. Raises `GroupNotFound` or `BadArgument`, as `add_members` does.

        Args:
            members: Name of one member, or several names.
            timeout: Seconds for the whole call; the default is that of the JetStream context.
        """
        removed = member_names(members)
        return await self._edit(lambda config: without_members(config, removed), timeout)

    async def set_mappings(
        self, mappings: Mapping[str, Iterable[int]], *, timeout: Seconds | None = None
    ) -> list[str]:
        """Replace all members, and return the names of the new members.

        `mappings` contains the partitions of each new member. Each partition must be assigned
        exactly once. Raises `BadArgument` or `GroupNotFound`.

        Args:
            mappings: The members with the numbers of their partitions.
            timeout: Seconds for the whole call; the default is that of the JetStream context.
        """
        return await self._edit(lambda config: with_mappings(config, mappings), timeout)

    async def delete_mappings(self, *, timeout: Seconds | None = None) -> None:
        """Remove all members that are mapped to partitions.

        Afterwards the group has no members until `add_members` or `set_mappings`. Raises
        `GroupNotFound`.

        Args:
            timeout: Seconds for the whole call; the default is that of the JetStream context.
        """
        await self._edit(without_mappings, timeout)

    async def _edit(
        self,
        change: Callable[[ElasticGroupConfig], ElasticGroupConfig],
        timeout: Seconds | None,
    ) -> list[str]:
        return (await self._store.edit(change, self._api.deadline(timeout))).members

    async def delete(self, *, timeout: Seconds | None = None) -> None:
        """Delete the group and its stream. The workers of the members then end.

        Messages that the group has not processed remain in the original stream, unless its limits
        remove them. A stream with interest or work-queue retention removes a message when the
        group's stream has copied it. If the group's stream has messages of such a stream, or of a
        stream that was deleted, nothing is deleted. Do not publish during the call: a message that
        is copied meanwhile is lost.

        Args:
            timeout: Seconds for the whole call; the default is that of the JetStream context.

        Raises:
            GroupNotFound: The group does not exist.
            InvalidGroupConfig: The group is deleted, but not the stream, which is not the group's:
                it does not copy the original stream.
            UnsuitableSettings: The only copies of pending messages are in the group's stream. Let
                the members process them, or purge that stream to lose them.
        """
        deadline = self._api.deadline(timeout)
        found = await self._store.find(deadline)
        await self._check_pending(deadline)
        if found is not None:
            await self._store.delete(deadline)
        try:
            stream = (await self._info(self._names.source, deadline)).config
        except StreamNotFound:
            stream = None
        if stream is not None and is_of_group(self._names, stream):
            with suppress(StreamNotFound):
                await self._jet.delete_stream(self._names.source, timeout=deadline.remaining())
        elif found is None:
            raise self._store.missing()
        elif stream is not None:
            raise InvalidGroupConfig(
                f"{self._names} is deleted, but not the stream {stream.name}: it is no copy of"
                f" {self._names.stream}; delete it with JetStream.delete_stream"
            )


@looped
def static_groups(
    jet: JetStream, stream_name: str, *, timeout: Seconds | None = None
) -> Items[str]:
    """Iterate over the names of the static consumer groups of a stream.

    Args:
        jet: The JetStream context.
        stream_name: Name of the stream.
        timeout: Seconds without progress after which the iteration fails; the default is the
            timeout of the JetStream context.
    """
    return group_names(jet, "static", stream_name, timeout)


@looped
def elastic_groups(
    jet: JetStream, stream_name: str, *, timeout: Seconds | None = None
) -> Items[str]:
    """Iterate over the names of the elastic consumer groups of a stream.

    Args:
        jet: The JetStream context.
        stream_name: Name of the stream.
        timeout: Seconds without progress after which the iteration fails; the default is the
            timeout of the JetStream context.
    """
    return group_names(jet, "elastic", stream_name, timeout)

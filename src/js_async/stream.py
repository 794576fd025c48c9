"""A handle of one stream: its state, its messages and its consumers."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import TYPE_CHECKING, Any, Final, Generic, Never, TypeVar, cast

import twinstream.models
from js_async._stream_consumers import StreamConsumers
from js_async.api import consumer_admin
from js_async.api.api import Api
from js_async.api.create_update import edited, update_stream
from js_async.runtime.concurrency import Items
from js_async.runtime.opening import Opening, looped, opening, opens
from twinstream.core.arguments.check_arguments import check_config, check_whole
from twinstream.core.arguments.nats_py_names import hint_attributes, unknown_keyword
from twinstream.core.consume.buffer_limits import buffer_limits
from twinstream.core.deadline import Seconds
from twinstream.core.read.page_limits import PAGE_BYTES, PAGE_MESSAGES
from twinstream.core.wire.payload import P
from twinstream.core.wire.subjects import check_filter
from twinstream.errors import BadArgument, InvalidResponse

if TYPE_CHECKING:
    from datetime import datetime

    from js_async.api.replicas import Replicas
    from js_async.consume.ordered import OrderedMessages
    from js_async.consume.push import PushMessages
    from js_async.read.stream_read import StreamRead
    from twinstream.codecs import Codec
    from twinstream.core.consume.reports import PullReport
    from twinstream.core.payloads.payloads import Payloads
    from twinstream.core.read.read_request import Via
    from twinstream.core.read.snapshot import Snapshot
    from twinstream.core.read.stream_message import StreamMessage
    from twinstream.models import (
        ConsumerConfig,
        DeliverPolicy,
        DeliverPolicyWord,
        ReplayPolicy,
        StreamConfig,
        StreamInfo,
    )

__all__ = ["Stream", "known_info"]

T = TypeVar("T")

# A value of `keep` that exceeds the number of messages that a stream can store.
_ALL: Final = 2**63 - 1


@hint_attributes
class Stream(StreamConsumers, Generic[P]):
    """A handle of a stream on the server."""

    # What decodes the messages of a typed handle, otherwise None.
    _payloads: Payloads[P] | None = None

    def __init__(self, api: Api, name: str, info: StreamInfo | None) -> None:
        super().__init__(api, name)
        self.cached_info = info

    @property
    def replicas(self) -> Replicas:
        """An object that moves the stream's leadership or its replicas to other servers."""
        from js_async.api.replicas import Replicas

        return Replicas(self._api, self._name)

    @property
    def name(self) -> str:
        """The stream's name."""
        return self._name

    def __repr__(self) -> str:
        return f"<Stream {self._name}>"

    async def info(
        self,
        *,
        deleted_details: bool = False,
        confirmed: bool = False,
        timeout: Seconds | None = None,
        **_unknown: Never,
    ) -> StreamInfo:
        """Request the configuration and state of the stream. Raises `StreamNotFound`.

        The call also updates `cached_info`.

        Args:
            deleted_details: Include the sequences of deleted messages. This is slow if there are
                many.
            confirmed: Repeat the request until the response is certainly the leader's, or raise
                `RequestTimeout`. Without this, a replica that knows no leader may answer (server
                2.11 to 2.15), and its state may lack acknowledged messages.
            timeout: Seconds; the default is that of the JetStream context.
        """
        if _unknown:
            raise unknown_keyword("Stream.info", _unknown)
        body = {"deleted_details": True} if deleted_details else None
        deadline = self._api.deadline(timeout)
        if confirmed:
            from js_async.api.leader_info import confirmed_info

            self.cached_info = await confirmed_info(self._api, self._name, deadline, body)
        else:
            self.cached_info = await self._api.stream_info(self._name, deadline, body)
        return self.cached_info

    @looped
    def subjects(
        self, subject: str = ">", *, timeout: Seconds | None = None
    ) -> Items[tuple[str, int]]:
        """Iterate over the stored subjects, each with its number of messages.

        The server sends pages of 100,000 subjects. If the stream changes between two pages, a
        subject may appear twice or not at all.

        Args:
            subject: Filter of the subjects. The default matches all.
            timeout: Seconds for each page; the default is that of the JetStream context.
        """
        from js_async.api import pager

        check_filter(subject)
        return pager.subjects(self._api, self._name, subject, timeout)

    async def change(
        self, edit: Callable[[StreamConfig], StreamConfig], *, timeout: Seconds | None = None
    ) -> StreamInfo:
        """Change some settings of the stream, and return the stream's info.

        The call requests the configuration and stores the changed copy that `edit` returns.
        Settings that this release does not know are kept. If nothing changes, no update is sent.
        The server cannot detect conflicts: of two concurrent changes, the later one overwrites the
        earlier one.

        Args:
            edit: Function that gets the configuration and returns a changed copy.
            timeout: Seconds for both requests together; the default is that of the JetStream
                context.

        Raises:
            StreamNotFound: The stream does not exist.
            BadArgument: `edit` returned no configuration, or that of another stream.
            JetStreamError: The server refused a changed setting.
        """
        deadline = self._api.deadline(timeout)
        info = await self._api.stream_info(self._name, deadline)
        config = edited(info.config, edit)
        # The server refuses an empty name like a missing one (10052).
        if not config.name:
            config = twinstream.models.evolve(config, name=self._name)
        if config.name != self._name:
            raise BadArgument(f"the configuration is for {config.name}, the stream is {self._name}")
        if config != info.config:
            self.cached_info = await update_stream(self._api, self._name, config, False, deadline)
            return self.cached_info
        self.cached_info = info
        return info

    async def seal(self, *, timeout: Seconds | None = None) -> StreamInfo:
        """Seal the stream, which is irreversible, and return the stream's info.

        No client can then add or remove messages, and no limit removes any.

        Args:
            timeout: Seconds for the whole call; the default is that of the JetStream context.
        """
        return await self.change(
            lambda config: twinstream.models.evolve(config, sealed=True), timeout=timeout
        )

    async def purge(
        self,
        *,
        subject: str | None = None,
        before_seq: int | None = None,
        keep: int | None = None,
        timeout: Seconds | None = None,
        **_unknown: Never,
    ) -> int:
        """Remove messages from the stream and return how many were removed.

        Without arguments, all messages are removed.

        Args:
            subject: Remove only messages that match this subject filter.
            before_seq: Remove only messages below this sequence.
            keep: Keep this number of the newest messages.
            timeout: Seconds; the default is that of the JetStream context.

        Raises:
            BadArgument: Both `before_seq` and `keep` are given, or one argument is invalid. With an
                invalid argument, the server would remove all messages.
        """
        if _unknown:
            raise unknown_keyword("Stream.purge", _unknown)
        if before_seq is not None and keep is not None:
            raise BadArgument("give before_seq or keep, not both")
        if before_seq is not None:
            check_whole(before_seq, "before_seq")
        if keep is not None:
            check_whole(keep, "keep", least=0)
        if subject is not None:
            check_filter(subject)
        if before_seq == 1:
            # No message is below sequence 1, but the server may remove all messages. Instead, send
            # a request that keeps all messages.
            before_seq, keep = None, _ALL
        body: dict[str, Any] = {"filter": subject, "seq": before_seq, "keep": keep}
        body = {name: value for name, value in body.items() if value is not None}
        target = self._api.subjects.stream("PURGE", self._name)
        deadline = self._api.deadline(timeout)
        answer = await self._api.call(
            target, body or None, twinstream.models.StreamPurgeResponse, deadline
        )
        return answer.purged or 0

    async def delete(self, *, timeout: Seconds | None = None) -> None:
        """Delete the stream with its messages and consumers. Raises `StreamNotFound`.

        Args:
            timeout: Seconds for the whole call; the default is that of the JetStream context.
        """
        target = self._api.subjects.stream("DELETE", self._name)
        deadline = self._api.deadline(timeout)
        await self._api.call(target, None, twinstream.models.StreamDeleteResponse, deadline)

    # ---- reading without a consumer

    def typed(self, model: type[T] | Codec[T]) -> Stream[T]:
        """Return a handle of the same stream whose messages have a `payload` of type `model`.

        This applies to the messages that the stream's own methods return: `read`, `snapshot`,
        `ordered`, `push_messages` and the single gets. A payload is decoded at its first use. A
        message that does not fit is returned as well: its `payload` raises `PayloadError`.

        Args:
            model: A type, for which `twinstream.codecs.codec_for` chooses the codec, or a codec.

        Raises:
            BadArgument: A part of the type cannot be encoded.
        """
        from twinstream.core.payloads.payloads import payloads_of

        made: Stream[T] = Stream(self._api, self._name, self.cached_info)
        made._payloads = payloads_of(model)
        return made

    def _typed(self, message: StreamMessage[Any]) -> StreamMessage[P]:
        if self._payloads is None:
            return message
        from twinstream.core.read.typed_message import typed_message

        return typed_message(message, self._payloads)

    async def get_message(
        self,
        seq: int,
        *,
        direct: bool = False,
        headers: bool = True,
        timeout: Seconds | None = None,
        **_unknown: Never,
    ) -> StreamMessage[P]:
        """Return one message by sequence. Raises `MessageNotFound`.

        Args:
            seq: Stream sequence.
            direct: Let any replica or mirror answer, which spreads the load. A replica may lag. A
                mirror may lack messages, or store them under other subjects. Without `direct`, or
                if the stream lacks `allow_direct`, the leader answers, which knows every
                acknowledged write.
            headers: Include the headers.
            timeout: Seconds; the default is that of the JetStream context.
        """
        if _unknown:
            raise unknown_keyword("Stream.get_message", _unknown)
        from js_async.read.get_message import get_message
        from twinstream.core.read.direct_get import seq_request

        request = seq_request(seq)
        message = await get_message(
            self._api, self._name, request, direct=direct, headers=headers, timeout=timeout
        )
        return self._typed(message)

    async def get_last_message(
        self,
        subject: str,
        *,
        direct: bool = False,
        headers: bool = True,
        timeout: Seconds | None = None,
    ) -> StreamMessage[P]:
        """Return the last message of a subject. Raises `MessageNotFound`.

        Args:
            subject: Subject of the message.
            direct: See `get_message`. The response may be an older message of the subject.
            headers: Include the headers.
            timeout: Seconds; the default is that of the JetStream context.
        """
        from js_async.read.get_message import get_message
        from twinstream.core.read.direct_get import last_request

        request = last_request(subject)
        message = await get_message(
            self._api, self._name, request, direct=direct, headers=headers, timeout=timeout
        )
        return self._typed(message)

    async def get_next_message(
        self,
        subject: str = ">",
        *,
        seq: int | None = None,
        start_time: datetime | None = None,
        direct: bool = False,
        headers: bool = True,
        timeout: Seconds | None = None,
    ) -> StreamMessage[P]:
        """Return the first message that matches a subject filter, from a sequence or time on.

        Raises `MessageNotFound`.

        Args:
            subject: Subject filter. The default matches all.
            seq: First sequence to search. The default is the start of the stream.
            start_time: Instead of `seq`: search messages stored at or after this time (server
                2.11).
            direct: See `get_message`.
            headers: Include the headers.
            timeout: Seconds; the default is that of the JetStream context.
        """
        from js_async.read.get_message import get_message
        from twinstream.core.read.direct_get import next_request

        request = next_request(subject, seq, start_time)
        message = await get_message(
            self._api, self._name, request, direct=direct, headers=headers, timeout=timeout
        )
        return self._typed(message)

    def read(
        self,
        start: int | None = None,
        end: int | None = None,
        *,
        subjects: str | Iterable[str] | None = None,
        start_time: datetime | None = None,
        end_time: datetime | None = None,
        via: Via | None = None,
        page_messages: int = PAGE_MESSAGES,
        page_bytes: int = PAGE_BYTES,
        idle_timeout: Seconds = 120.0,
    ) -> StreamRead[P]:
        """Return an iterator over a range of the stream.

        The result is complete even if replicas lag. The iterator sends nothing before the caller
        takes the first message. It only reads: all messages stay in the stream.

        Args:
            start: First sequence. By default, the read starts at the beginning.
            end: Sequence to stop at (exclusive). The default is the end of the stream when the read
                begins.
            subjects: Subject filters. The default matches all, an empty list nothing.
            start_time: Start with messages stored at or after this time (server 2.11).
            end_time: Stop at messages stored at or after this time (server 2.11).
            via: How to read: "direct" uses direct gets (`allow_direct`, server 2.11), "consumer" an
                ephemeral consumer, and "leader" gets each message from the leader, which always
                works. The default is the fastest way without side effects.
            page_messages: Maximum number of messages of a page. One page is read ahead.
            page_bytes: Approximate maximum number of bytes of a page.
            idle_timeout: Seconds without progress after which the read fails.
        """
        from js_async.read.stream_read import StreamRead
        from twinstream.core.read.read_request import read_request

        request = read_request(
            start=start,
            end=end,
            start_time=start_time,
            end_time=end_time,
            subjects=subjects,
            via=via,
            page_messages=page_messages,
            page_bytes=page_bytes,
            idle_timeout=idle_timeout,
        )
        return StreamRead(self._api, self._name, request, self._payloads)

    async def snapshot(
        self,
        subjects: str | Iterable[str] | None = None,
        *,
        at_seq: int | None = None,
        at_time: datetime | None = None,
        idle_timeout: Seconds = 120.0,
    ) -> Snapshot[P]:
        """Return the last message of each subject, all as of one sequence.

        The snapshot includes every write that was acknowledged before the call. A message that is
        deleted or expires during the call may or may not be included. If the stream is deleted and
        re-created during the call, the snapshot is that of the new stream.

        Args:
            subjects: Subject filters. The default matches all, an empty list nothing.
            at_seq: Return the state right after this sequence. Messages that the stream no longer
                has are missing.
            at_time: Return the state before this time (server 2.11). Messages that the stream no
                longer has are missing.
            idle_timeout: Seconds without progress after which the call fails. A state that fits
                into one response is read in one step.

        Raises:
            StreamNotFound: The stream does not exist.
            JetStreamError: The server refused a request.
            RequestTimeout: The call made no progress for `idle_timeout` seconds.
        """
        from js_async.read.snapshot import take_snapshot
        from twinstream.core.read.read_request import snapshot_request

        request = snapshot_request(subjects, at_seq, at_time, idle_timeout)
        taken = await take_snapshot(self._api, self._name, request)
        if self._payloads is None:
            return cast("Snapshot[P]", taken)
        from twinstream.core.read.typed_message import typed_snapshot

        return typed_snapshot(taken, self._payloads)

    async def delete_message(
        self, seq: int, *, erase: bool = False, timeout: Seconds | None = None
    ) -> None:
        """Remove one message. Raises `MessageNotFound`.

        Args:
            seq: Stream sequence of the message.
            erase: Also overwrite the bytes of the message on disk, which is slow.
            timeout: Seconds; the default is that of the JetStream context.
        """
        target = self._api.subjects.message("DELETE", self._name)
        body: dict[str, Any] = {"seq": seq} if erase else {"seq": seq, "no_erase": True}
        deadline = self._api.deadline(timeout)
        await self._api.call(target, body, twinstream.models.StreamMessageDeleteResponse, deadline)

    # ---- reading with a client-managed consumer

    def ordered(
        self,
        *,
        subjects: str | Iterable[str] | None = None,
        deliver_policy: DeliverPolicy | DeliverPolicyWord | None = None,
        start_seq: int | None = None,
        start_time: datetime | None = None,
        headers_only: bool = False,
        replay_policy: ReplayPolicy | str | None = None,
        stop_after: int | None = None,
        max_messages: int | None = None,
        max_bytes: int | None = None,
        expires: Seconds = 30.0,
        heartbeat: Seconds | None = 5.0,
        inactive_threshold: Seconds | None = None,
        metadata: Mapping[str, str] | None = None,
        name_prefix: str | None = None,
        max_reset_attempts: int | None = None,
        on_report: Callable[[PullReport], None] | None = None,
        **_unknown: Never,
    ) -> OrderedMessages[P]:
        """Return an iterator that yields each message once and in order (ADR-17).

        The iterator uses an ephemeral consumer, which it re-creates after a disconnect or a loss of
        the consumer. It ends when it is closed, or after `stop_after` messages. A later read can
        resume after its `position`.

        Args:
            subjects: Subject filters. The default matches all, an empty list nothing.
            deliver_policy: Where to start. The default is the beginning of the stream.
            start_seq: Sequence to start at.
            start_time: Time to start at.
            headers_only: Omit the payloads.
            replay_policy: "original" delivers messages at the pace at which they were stored.
            stop_after: Number of messages after which the iterator ends.
            max_messages: Maximum number of messages to buffer, as in `Consumer.messages`. With
                `last_per_subject` and a stream that keeps several messages of a subject, the buffer
                is limited by count, even with `max_bytes`, until the last messages have been read.
            max_bytes: Maximum number of bytes to buffer, as in `Consumer.messages`.
            expires: Lifetime of one pull request in seconds.
            heartbeat: Interval of idle heartbeats in seconds. None means 5, or half of `expires` if
                that is less.
            inactive_threshold: Seconds without pulls after which the server deletes the consumer.
                The default is 5 minutes, or less if the stream limits it.
            metadata: Metadata of the consumers.
            name_prefix: Prefix of the consumers' names. An id and a number follow it.
            max_reset_attempts: Number of failed attempts in a row to re-create a lost consumer
                after which the last error is raised. None means no limit.
            on_report: Callback that receives warnings and recoveries.
        """
        if _unknown:
            raise unknown_keyword("Stream.ordered", _unknown)
        from js_async.consume.ordered import OrderedMessages
        from js_async.consume.ordered_buffer import OrderedBuffer
        from twinstream.core.consume.ordered_config import ordered_config

        config = ordered_config(
            subjects,
            deliver_policy,
            start_seq,
            start_time,
            headers_only,
            replay_policy=replay_policy,
            inactive_threshold=inactive_threshold,
            metadata=metadata,
        )
        limits = buffer_limits(
            max_messages=max_messages,
            max_bytes=max_bytes,
            expires=expires,
            heartbeat=heartbeat,
            threshold_messages=None,
            threshold_bytes=None,
            stop_after=stop_after,
        )
        buffer = OrderedBuffer(
            self._api, self._name, config, limits, on_report, name_prefix, max_reset_attempts
        )
        buffer.set_payloads(self._payloads)
        if self._api.transport.observers is None:
            return OrderedMessages(buffer)
        from js_async.consume.noted import noted

        return cast("OrderedMessages[P]", noted(OrderedMessages)(buffer))

    @opens
    def push_messages(
        self,
        consumer: str | ConsumerConfig,
        *,
        on_report: Callable[[PullReport], None] | None = None,
    ) -> Opening[PushMessages[P]]:
        """Return an iterator over the messages of a push consumer.

        Args:
            consumer: Name of an existing push consumer, or the configuration of the consumer to
                create. Without a `deliver_subject`, the client chooses a unique one. With a
                `deliver_group`, all clients that give the same name, subject and group share
                the messages: the configuration needs `durable_name` or `name`, and all clients
                give one `deliver_subject`, or the name of the existing consumer. `flow_control`
                needs an `idle_heartbeat`. A consumer without a name and group has heartbeats of 5 s
                by default.
            on_report: Callback that receives warnings.

        Raises:
            ConsumerNotFound: There is no consumer of this name.
            ConsumerExists: The consumer exists with another configuration.
            BadArgument: The named consumer is a pull consumer, or it has no `deliver_group` and
                another subscription is bound to it. Each of the two would get every message. Or the
                configuration has a `deliver_group` and no name.
        """
        return opening(self._push(consumer, on_report))

    async def _push(
        self, consumer: str | ConsumerConfig, on_report: Callable[[PullReport], None] | None
    ) -> PushMessages[P]:
        """Open a push consumer: an existing one by name, or a new one with a configuration."""
        from js_async.consume.push import PushMessages
        from js_async.consume.push_buffer import PushBuffer, check_group, with_heartbeats

        info = None
        if isinstance(consumer, str):
            info = await consumer_admin.free_push(self._api, self._name, consumer)
            config = info.config
            if config is None:
                raise InvalidResponse(f"{self._name}/{consumer}: the server sent no configuration")
            if config.deliver_subject is None:
                raise BadArgument(f"{self._name}/{consumer} is a pull consumer: use get_consumer")
        else:
            check_config(consumer, twinstream.models.ConsumerConfig)
            check_group(consumer)
            config = with_heartbeats(consumer)
        buffer = PushBuffer(self._api, self._name, config, on_report)
        buffer.payloads = self._payloads
        await buffer.open(info)
        if self._api.transport.observers is None:
            return PushMessages(buffer)
        from js_async.consume.noted import noted

        return cast("PushMessages[P]", noted(PushMessages)(buffer))


def known_info(stream: Stream[Any]) -> StreamInfo:
    """Return the last known info of a stream whose info was requested before."""
    if stream.cached_info is None:
        raise BadArgument(f"stream {stream.name} was bound without its info: call info() first")
    return stream.cached_info

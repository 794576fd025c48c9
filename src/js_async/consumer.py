"""A handle of one pull consumer: its state, and methods that pull messages from it."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from datetime import datetime
from typing import TYPE_CHECKING, Never, TypeVar, cast

import twinstream.models
from js_async.api import consumer_admin
from js_async.api.api import Api
from js_async.api.create_update import CreateAction, create_consumer, edited
from js_async.consume.delivery import is_for_nobody_else, pull_bounds
from js_async.consume.fetch_calls import FetchCalls
from js_async.consume.message import Message
from js_async.runtime.concurrency import Handler
from twinstream.core.arguments.nats_py_names import hint_attributes, unknown_keyword
from twinstream.core.consume.ack_wait import ack_wait_of
from twinstream.core.consume.buffer_limits import buffer_limits
from twinstream.core.consume.pull_request import OnRefused, Priority, check_priority
from twinstream.core.deadline import Seconds, finite_seconds
from twinstream.core.wire.payload import P
from twinstream.errors import BadArgument, InvalidResponse

if TYPE_CHECKING:
    from js_async.consume.consume import Consuming
    from js_async.consume.consumer_recovery import OnDeleted
    from js_async.consume.messages import Messages
    from twinstream.codecs import Codec
    from twinstream.core.consume.order import Order
    from twinstream.core.consume.reports import PullReport
    from twinstream.models import ConsumerConfig, ConsumerInfo, ConsumerPauseResponse

__all__ = ["Consumer", "existing_consumer", "made_consumer"]

T = TypeVar("T")


@hint_attributes
class Consumer(FetchCalls[P]):
    """A handle of a pull consumer on the server."""

    @property
    def name(self) -> str:
        """The consumer's name."""
        return self._name

    @property
    def stream_name(self) -> str:
        """The name of the consumer's stream."""
        return self._stream

    def __repr__(self) -> str:
        return f"<Consumer {self._stream}/{self._name}>"

    # ---- the consumer on the server

    async def info(self, *, timeout: Seconds | None = None) -> ConsumerInfo:
        """Request the configuration and state of the consumer. Raises `ConsumerNotFound`.

        The call also updates `cached_info`.

        Args:
            timeout: Seconds; the default is that of the JetStream context.
        """
        self.cached_info = await consumer_admin.info(
            self._api, self._stream, self._name, self._api.deadline(timeout)
        )
        return self.cached_info

    async def change(
        self,
        edit: Callable[[ConsumerConfig], ConsumerConfig],
        *,
        timeout: Seconds | None = None,
    ) -> ConsumerInfo:
        """Change some settings of the consumer, and return the consumer's info.

        The call requests the configuration and stores the changed copy that `edit` returns.
        Settings that this release does not know are kept. If nothing changes, no update is sent.
        The server cannot detect conflicts: of two concurrent changes, the later one overwrites the
        earlier one.

        Args:
            edit: Function that gets the configuration and returns a changed copy.
            timeout: Seconds for both requests together; the default is that of the JetStream
                context.

        Raises:
            ConsumerNotFound: The consumer does not exist.
            BadArgument: `edit` returned no configuration.
            JetStreamError: The server refused a changed setting.
        """
        deadline = self._api.deadline(timeout)
        info = await consumer_admin.info(self._api, self._stream, self._name, deadline)
        if info.config is None:
            raise InvalidResponse(f"{self._stream}/{self._name}: the server sent no configuration")
        config = edited(info.config, edit)
        if config != info.config:
            info = await create_consumer(self._api, self._stream, config, "update", deadline)
        self.cached_info = info
        return info

    async def delete(self, *, timeout: Seconds | None = None) -> None:
        """Delete the consumer. Raises `ConsumerNotFound`.

        Args:
            timeout: Seconds for the whole call; the default is that of the JetStream context.
        """
        deadline = self._api.deadline(timeout)
        await consumer_admin.delete(self._api, self._stream, self._name, deadline)

    async def pause(
        self,
        duration: Seconds | None = None,
        *,
        until: datetime | None = None,
        timeout: Seconds | None = None,
    ) -> ConsumerPauseResponse:
        """Stop the deliveries of the consumer for some time (server 2.11).

        Pulls wait during the pause. Give either `duration` or `until`. Raises `BadArgument` if the
        end of the pause is past by the server's clock. Returns the server's response.

        Args:
            duration: Seconds from now, by the local clock.
            until: End of the pause, by the server's clock.
            timeout: Seconds; the default is that of the JetStream context.
        """
        if isinstance(duration, datetime):
            raise BadArgument("duration is in seconds; pass the end of a pause as until=")
        length = None if duration is None else finite_seconds(duration, "duration")
        end = consumer_admin.pause_end(length, until)
        deadline = self._api.deadline(timeout)
        return await consumer_admin.pause(self._api, self._stream, self._name, end, deadline)

    async def resume(self, *, timeout: Seconds | None = None) -> None:
        """End a pause (server 2.11).

        Args:
            timeout: Seconds for the whole call; the default is that of the JetStream context.
        """
        deadline = self._api.deadline(timeout)
        await consumer_admin.pause(self._api, self._stream, self._name, None, deadline)

    async def reset(
        self, seq: int | None = None, *, timeout: Seconds | None = None
    ) -> ConsumerInfo:
        """Restart the consumer, and return its info (server 2.14).

        The server forgets which messages wait for an acknowledgement, and the delivery counts.

        Args:
            seq: Stream sequence to restart at, by default just above the ack floor.
            timeout: Seconds; the default is that of the JetStream context.
        """
        deadline = self._api.deadline(timeout)
        self.cached_info = await consumer_admin.reset(
            self._api, self._stream, self._name, seq, deadline
        )
        return self.cached_info

    async def unpin(self, group: str, *, timeout: Seconds | None = None) -> None:
        """Remove the pin of a priority group's client, so that the server pins another client.

        Needs server 2.11.

        Args:
            group: Name of the priority group.
            timeout: Seconds; the default is that of the JetStream context.
        """
        deadline = self._api.deadline(timeout)
        await consumer_admin.unpin(self._api, self._stream, self._name, group, deadline)

    async def step_down(
        self,
        *,
        preferred: str | None = None,
        cluster: str | None = None,
        tags: Sequence[str] = (),
        timeout: Seconds | None = None,
    ) -> None:
        """Move the leadership of the consumer to another server.

        The arguments are those of `Replicas.step_down`.

        Args:
            preferred: Name of the server that should lead.
            cluster: Name of the cluster that should have the leader.
            tags: Tags that the new leader's server must have.
            timeout: Seconds for the whole call; the default is that of the JetStream context.
        """
        deadline = self._api.deadline(timeout)
        await consumer_admin.step_down(
            self._api, self._stream, self._name, preferred, cluster, tags, deadline
        )

    # ---- iterating

    def typed(self, model: type[T] | Codec[T]) -> Consumer[T]:
        """Return a handle of the same consumer whose messages have a `payload` of type `model`.

        The payload of a message is decoded at its first use. A message that does not fit is
        returned as well: its `payload` raises `PayloadError`, and `data` has the bytes.

        Args:
            model: A type, for which `twinstream.codecs.codec_for` chooses the codec, or a codec.

        Raises:
            BadArgument: A part of the type cannot be encoded.
        """
        from twinstream.core.payloads.payloads import payloads_of

        made: Consumer[T] = Consumer(self._api, self._stream, self._name, self.cached_info)
        made._channels, made._payloads = self._channels, payloads_of(model)
        return made

    def messages(
        self,
        *,
        max_messages: int | None = None,
        max_bytes: int | None = None,
        expires: Seconds | None = None,
        heartbeat: Seconds | None = None,
        threshold_messages: int | None = None,
        threshold_bytes: int | None = None,
        priority: Priority | None = None,
        stop_after: int | None = None,
        on_deleted: OnDeleted = "raise",
        on_refused: OnRefused = "raise",
        on_report: Callable[[PullReport], None] | None = None,
        **_unknown: Never,
    ) -> Messages[P]:
        """Return an iterator over the messages, which it pulls into a buffer (ADR-37).

        Without `stop_after`, the iterator waits for more messages until it is closed or drained.

        If the consumer's ack_wait is known, the iterator measures the pace of the caller, and
        requests no more messages than the caller can take within half of the ack_wait. It also
        extends the ack_wait of the buffered messages with progress reports. The ack_wait is known
        after `info`, and after the creation of the consumer.

        If the caller neither takes nor waits for a message for 5 x ack_wait, the iterator stops
        these reports, so that the server redelivers the buffered messages. It pulls again when the
        caller takes the next message. For a consumer that is not durable or has `max_deliver=1`,
        the reports continue.

        Pull requests respect the consumer's `max_batch` and, by default, its `max_expires`, if
        known. A pinned client pulls often enough to keep its pin, as long as the caller takes a
        message within half of the consumer's `priority_timeout`.

        Args:
            max_messages: Maximum number of messages to buffer. Without `max_bytes`, the default is
                500, or fewer messages if 500 would exceed about 16 MiB. With `max_bytes`, there is
                no default.
            max_bytes: Maximum number of bytes to buffer, as the server counts them. May be combined
                with `max_messages`.
            expires: Lifetime of one pull request in seconds. The default is 30, or the consumer's
                `max_expires` if that is less.
            heartbeat: Interval of idle heartbeats in seconds (0.5 to 30). The default is 5, or half
                of `expires` if that is less. After two missing heartbeats the iterator pulls again.
            threshold_messages: Pull again when at most this number of messages is buffered or
                requested; the default is half of the maximum.
            threshold_bytes: Pull again when at most this number of bytes is buffered or requested;
                the default is half of the maximum.
            priority: Priority group and options. Required if the consumer has priority groups.
            stop_after: End after this number of messages, and request no more than that.
            on_deleted: What to do when the consumer is deleted: "raise" raises `ConsumerDeleted`;
                "wait" waits until it exists again; "recreate" re-creates it.
            on_refused: What to do if a limit of the consumer refuses the first pull: "raise" raises
                `PullRefused`; "retry" reports the refusal and pulls again after growing pauses,
                until the consumer is changed.
            on_report: Callback that receives warnings, recoveries, and gained and lost pins.

        Raises:
            BadArgument: An argument is invalid, or `priority` is missing although the consumer is
                known to have groups.
        """
        if _unknown:
            raise unknown_keyword("Consumer.messages", _unknown)
        from js_async.consume.buffer import MessageBuffer
        from js_async.consume.consumer_recovery import ConsumerRecovery
        from js_async.consume.messages import Messages

        self._check_group(priority)
        ack_wait = ack_wait_of(self.cached_info)
        limits = buffer_limits(
            max_messages=max_messages,
            max_bytes=max_bytes,
            expires=expires,
            heartbeat=heartbeat,
            threshold_messages=threshold_messages,
            threshold_bytes=threshold_bytes,
            priority=priority,
            bounds=pull_bounds(self.cached_info),
            stop_after=stop_after,
            on_refused=on_refused,
        )
        missing = ConsumerRecovery(
            self._api, self._channels, self._stream, self._name, self.cached_info, on_deleted
        )
        buffer = MessageBuffer(missing, limits, ack_wait, on_report, self._wants_acks())
        buffer.progress.keep_all = is_for_nobody_else(self.cached_info)
        buffer.ready.payloads = self._payloads
        if self._api.transport.observers is None:
            return Messages(buffer)
        from js_async.consume.noted import noted

        return cast("Messages[P]", noted(Messages)(buffer))

    def consume(
        self,
        handler: Handler[Message[P]],
        *,
        concurrency: int = 1,
        order: Order = "none",
        progress: bool = False,
        max_messages: int | None = None,
        max_bytes: int | None = None,
        expires: Seconds | None = None,
        heartbeat: Seconds | None = None,
        threshold_messages: int | None = None,
        threshold_bytes: int | None = None,
        priority: Priority | None = None,
        stop_after: int | None = None,
        on_deleted: OnDeleted = "raise",
        on_refused: OnRefused = "raise",
        on_report: Callable[[PullReport], None] | None = None,
        **_unknown: Never,
    ) -> Consuming:
        """Return a consumption, which calls a handler for each message in the background (ADR-37).

        The handler must acknowledge its message. An error that the handler raises ends the
        consumption, and `Consuming.wait` raises it. The arguments from `max_messages` on are those
        of `messages`.

        Args:
            handler: Function to call with each message.
            concurrency: Maximum number of handlers that run at once.
            order: "none", "subject" (messages of one subject one after the other) or "total" (all
                messages one after the other).
            progress: Extend the ack_wait while a handler runs. Needs a known ack_wait.
            max_messages: Maximum number of messages to buffer.
            max_bytes: Maximum number of bytes to buffer.
            expires: Lifetime of one pull request in seconds.
            heartbeat: Interval of idle heartbeats in seconds.
            threshold_messages: Pull again when this number of messages is buffered.
            threshold_bytes: Pull again when this number of bytes is buffered.
            priority: Priority group and options.
            stop_after: End after this number of messages.
            on_deleted: What to do when the consumer is deleted.
            on_refused: What to do if a limit of the consumer refuses the first pull.
            on_report: Callback that receives reports.
        """
        if _unknown:
            raise unknown_keyword("Consumer.consume", _unknown)
        from js_async.consume.consume import Consuming

        messages = self.messages(
            max_messages=max_messages,
            max_bytes=max_bytes,
            expires=expires,
            heartbeat=heartbeat,
            threshold_messages=threshold_messages,
            threshold_bytes=threshold_bytes,
            priority=priority,
            stop_after=stop_after,
            on_deleted=on_deleted,
            on_refused=on_refused,
            on_report=on_report,
        )
        label = f"{self._name} of {self._stream}"
        return Consuming(label, messages, handler, concurrency, order, progress, on_report)

    def _check_group(self, priority: Priority | None) -> None:
        """Raise `BadArgument` unless `priority` is a `Priority` that names a group of the consumer.

        Do nothing more if the consumer is not known to have groups.
        """
        check_priority(priority)
        config = self.cached_info.config if self.cached_info is not None else None
        groups = config.priority_groups if config is not None else None
        if not groups or (priority is not None and priority.group in groups):
            return
        reason = "no priority is given" if priority is None else f"there is no {priority.group!r}"
        raise BadArgument(
            f"{self._stream}/{self._name}: {reason}; each pull must name one of the priority"
            f" groups {', '.join(groups)}: pass priority=Priority(group={groups[0]!r})"
        )

    def _wants_acks(self) -> bool:
        config = self.cached_info.config if self.cached_info is not None else None
        return config is None or config.ack_policy not in {twinstream.models.AckPolicy.NONE, None}


async def made_consumer(
    api: Api,
    stream_name: str,
    config: ConsumerConfig,
    action: CreateAction,
    *,
    pedantic: bool = False,
    timeout: Seconds | None = None,
) -> Consumer:
    """Create or change a consumer, and return its handle; see `Stream.create_consumer`."""
    deadline = api.deadline(timeout)
    info = await create_consumer(api, stream_name, config, action, deadline, pedantic=pedantic)
    return Consumer(api, stream_name, info.name, info)


async def existing_consumer(
    api: Api, stream_name: str, consumer_name: str, timeout: Seconds | None = None
) -> Consumer:
    """Return the handle of an existing consumer. Raises `ConsumerNotFound`."""
    consumer = Consumer(api, stream_name, consumer_name, None)
    await consumer.info(timeout=timeout)
    return consumer

"""The methods of `Consumer` that fetch messages, in batches and one by one."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING, Any, Final, Generic, Never

from attrs import evolve

from js_async.api.api import Api
from js_async.consume.delivery import Delivery, pull_bounds
from js_async.consume.message import Message, TypedMessage, message_of
from js_async.consume.pull_subscription import PullChannels
from js_async.runtime.concurrency import sleep
from twinstream.core.arguments.check_arguments import check_kind
from twinstream.core.arguments.nats_py_names import methods_of, unknown_keyword
from twinstream.core.consume.ack_wait import ack_wait_of
from twinstream.core.consume.batch import Batch, BatchEnd
from twinstream.core.consume.fetch import Fetch
from twinstream.core.consume.pin import pin_of
from twinstream.core.consume.pull_error import of_consumer
from twinstream.core.consume.pull_request import Priority, PullLimits, Wait, fetch_limits
from twinstream.core.deadline import Seconds, seconds
from twinstream.core.server_faults.delays import SPREADING, SPREADING_SURELY, spreading_pauses
from twinstream.core.wire.payload import P
from twinstream.errors import NoResponders, TwinstreamError

if TYPE_CHECKING:
    from twinstream.core.payloads.payloads import Payloads
    from twinstream.models import ConsumerInfo

__all__ = ["FetchCalls"]

# The first fetch is repeated for at least this time, even if its timeout is shorter (seconds).
_LEAST: Final = 0.1


@methods_of("Consumer")
class FetchCalls(Generic[P]):
    """The base class of `Consumer` with the methods that fetch messages."""

    # What decodes the messages of a typed handle, otherwise None.
    _payloads: Payloads[P] | None = None

    def __init__(self, api: Api, stream: str, name: str, info: ConsumerInfo | None) -> None:
        self._api: Final = api
        self._stream: Final = stream
        self._name: Final = name
        self._channels = PullChannels(api, stream, name)
        # Whether the consumer has responded to a fetch. Before its first response, some servers of
        # a cluster may not know the consumer's leader.
        self._answered = False
        self.cached_info: ConsumerInfo | None = info
        """The last known info of the consumer, or None."""

    async def fetch(
        self,
        max_messages: int | None = None,
        *,
        timeout: Seconds | None = 5.0,
        max_bytes: int | None = None,
        wait: Wait = "full",
        two_step: bool = False,
        priority: Priority | None = None,
        heartbeat: Seconds | None = None,
        **_unknown: Never,
    ) -> Batch[Message[P]]:
        """Fetch a batch of messages. An empty batch is not an error.

        The batch's `reason` states why it ended. With `wait="full"` the call returns the first
        message only when the batch has ended. Keep `timeout` below the consumer's `ack_wait`;
        otherwise the server may redeliver the message before the call returns (`Message.is_late`).

        In a cluster it may take some milliseconds until every server can reach a new consumer. If
        the first fetch of a consumer has no responders, it is therefore repeated for up to 0.3
        seconds before it raises `NoResponders`. If the consumer's info is known, it is repeated for
        up to half a second.

        Args:
            max_messages: Maximum number of messages.
            timeout: Seconds to wait. If the server does not end the request then, the call returns
                one second later. None waits without limit, also across a reconnect; the call sends
                a new request at least every 30 s.
            max_bytes: Maximum number of bytes, as the server counts them. May be combined with
                `max_messages`.
            wait: When to end before the maximum is reached: "full" waits `timeout` seconds for the
                whole batch, "first" waits for at least one message, "none" returns the messages
                that are available now. A server that cannot deliver because `max_ack_pending` is
                reached does not respond before the timeout.
            two_step: Request the available messages first, and wait only if there are none
                (ADR-13).
            priority: Priority group and options.
            heartbeat: Interval of idle heartbeats in seconds (0.5 to 30). The default is 5 if
                `timeout` is 10 or more, otherwise none. The fetch ends when two heartbeats are
                missing.

        Raises:
            PullRefused: The request exceeds a limit of the consumer.
            NoResponders: The consumer does not exist, or has no leader.
            ConsumerDeleted: The consumer was deleted.
            ConsumerIsPush: The consumer is a push consumer.
            InvalidPullRequest: The server rejected the request as invalid.
            PullError: The first message alone is larger than `max_bytes`.
            RequestTimeout: The client was not connected in time.
            PermissionDenied: The user may not pull.
        """
        if _unknown:
            raise unknown_keyword("Consumer.fetch", _unknown)
        observers = self._api.transport.observers
        if observers is None:
            return await self._fetched(
                max_messages, timeout, max_bytes, wait, two_step, priority, heartbeat
            )
        with observers.begin(
            "receive", "fetch", stream=self._stream, consumer=self._name, count=0
        ) as operation:
            batch = await self._fetched(
                max_messages, timeout, max_bytes, wait, two_step, priority, heartbeat
            )
            operation.messages, operation.count = batch, len(batch)
            return batch

    async def _fetched(
        self,
        max_messages: int | None,
        timeout: Seconds | None,
        max_bytes: int | None,
        wait: Wait,
        two_step: bool,
        priority: Priority | None,
        heartbeat: Seconds | None,
    ) -> Batch[Message[P]]:
        most = self._most(max_messages, max_bytes)
        if timeout is None:
            return await self._fetch_rounds(most, max_bytes, wait, priority, heartbeat)
        limits = fetch_limits(most, max_bytes, timeout, wait, priority, heartbeat)
        if two_step and not limits.no_wait:
            return self._batch(await self._fetch_in_two_steps(limits, seconds(timeout)))
        return self._batch(await self._fetch(limits, seconds(timeout)))

    async def _fetch_rounds(
        self,
        most: int | None,
        max_bytes: int | None,
        wait: Wait,
        priority: Priority | None,
        heartbeat: Seconds | None,
    ) -> Batch[Message[P]]:
        """Fetch with one or more pull requests until the fetch has what `wait` asks for.

        Each request lasts at most a round, or the consumer's `max_expires` if that is less.
        """
        from js_async.consume import fetch_rounds

        longest = fetch_rounds.ROUND
        length = min(longest, pull_bounds(self.cached_info).max_expires or longest)
        limits = fetch_limits(most, max_bytes, length, wait, priority, heartbeat)

        async def once(left: int, left_bytes: int | None) -> Batch[Message[P]]:
            part = evolve(limits, max_messages=left, max_bytes=left_bytes)
            return self._batch(await self._fetch(part, length))

        return await fetch_rounds.fetch_rounds(
            once, limits.max_messages, max_bytes, full=wait == "full", pinned=limits.may_pin
        )

    async def _fetch_in_two_steps(self, limits: PullLimits, patience: float) -> Fetch:
        """Request the available messages first, and wait only if there are none (ADR-13)."""
        now = evolve(limits, no_wait=True, expires=None, heartbeat=float("inf"))
        fetch = await self._fetch(now, 0.0)
        return fetch if fetch.frames else await self._fetch(limits, patience)

    def _most(self, max_messages: int | None, max_bytes: int | None) -> int | None:
        """Return the maximum number of messages of a fetch.

        This is `max_messages`, if it is given. With `max_bytes` alone, the maximum is the
        `max_batch` of the consumer. None means that there is no known maximum.
        """
        if max_messages is not None or max_bytes is None:
            return max_messages
        return pull_bounds(self.cached_info).max_batch

    async def next(
        self,
        *,
        timeout: Seconds | None = 5.0,
        priority: Priority | None = None,
        heartbeat: Seconds | None = None,
        **_unknown: Never,
    ) -> Message[P] | None:
        """Request exactly one message; return it, or None if none arrived in time.

        Raises `NoResponders`, `ConsumerDeleted` and other errors, as `fetch` does.

        Args:
            timeout: Seconds to wait; None waits without limit.
            priority: See `fetch`.
            heartbeat: See `fetch`.
        """
        if _unknown:
            raise unknown_keyword("Consumer.next", _unknown)
        observers = self._api.transport.observers
        if observers is None:
            return await self._fetch_one(timeout, priority, heartbeat)
        with observers.begin(
            "receive", "next", stream=self._stream, consumer=self._name
        ) as operation:
            message = await self._fetch_one(timeout, priority, heartbeat)
            operation.messages = () if message is None else (message,)
            return message

    async def _fetch_one(
        self, timeout: Seconds | None, priority: Priority | None, heartbeat: Seconds | None
    ) -> Message[P] | None:
        if timeout is None:
            batch = await self._fetch_rounds(1, None, "full", priority, heartbeat)
            return batch[0] if batch else None
        limits = fetch_limits(1, None, timeout, "full", priority, heartbeat)
        return self._first(await self._fetch(limits, limits.expires or 0.0))

    async def double_ack(
        self, messages: Iterable[Message[Any]], *, timeout: Seconds | None = None
    ) -> list[Message[Any]]:
        """Acknowledge many messages, and return those that the server may redeliver.

        All acknowledgements are sent at once. The call returns when the server has confirmed all of
        them, or at the timeout. A message is returned for one of two reasons. If its confirmation
        is missing, the caller may acknowledge it again. If its confirmation came after ack_wait,
        the server may have redelivered it already.

        Args:
            messages: Messages of this consumer.
            timeout: The longest wait in seconds; the default is that of the JetStream context.

        Raises:
            AlreadyAcknowledged: A message was acknowledged before. No acknowledgement was sent.
            RequestTimeout: The client was not connected in time.
        """
        from js_async.consume.double_ack import double_ack

        given = list(messages)
        for message in given:
            check_kind(message, Message, "message", "a Message of this consumer")
        return await double_ack(self._api.transport, given, self._api.deadline(timeout))

    async def _fetch(self, limits: PullLimits, patience: float) -> Fetch:
        fetch = await self._channels.fetch(limits, patience)
        if fetch.error is None and limits.priority is None:
            self._answered = True
            return fetch
        if not self._answered:
            fetch = await self._repeat_first_fetch(limits, patience, fetch)
        self._conclude(limits, fetch)
        return fetch

    def _conclude(self, limits: PullLimits, fetch: Fetch) -> None:
        """Record the pin and whether the consumer responded. Raise the error of the fetch, if any.

        A fetch without responders is no response.
        """
        if limits.priority is not None and limits.priority.may_pin:
            self._note_pin(limits.priority.group, fetch)
        if fetch.error is None:
            self._answered = True
            return
        self._answered |= not isinstance(fetch.error, NoResponders)
        raise of_consumer(fetch.error, self._stream, self._name)

    def _spreading(self, patience: float) -> float:
        """Return for how many seconds a fetch is repeated while it has no responders.

        In a cluster, it takes some milliseconds until every server knows the leader of a new
        consumer. If the consumer's info is unknown, the time is shorter, because the consumer may
        not exist. After the consumer's first response, the time is 0.
        """
        longest = SPREADING_SURELY if self.cached_info else SPREADING
        return 0.0 if self._answered else min(max(patience, _LEAST), longest)

    async def _repeat_first_fetch(self, limits: PullLimits, patience: float, fetch: Fetch) -> Fetch:
        """Repeat the first fetch while it has no responders; see `_spreading`."""
        for pause in spreading_pauses(self._spreading(patience)):
            if not isinstance(fetch.error, NoResponders):
                break
            await sleep(pause)
            fetch = await self._channels.fetch(limits, patience)
        return fetch

    def _batch(self, fetch: Fetch) -> Batch[Message[P]]:
        if fetch.end is None:
            raise TwinstreamError("internal error: the fetch has no end; please report this")
        return Batch(self._messages_of(fetch), fetch.end, fetch.detail)

    def _messages_of(self, fetch: Fetch) -> list[Message[P]]:
        """Return the messages of a fetch. Messages that arrived together share a `Delivery`."""
        transport, ack_wait = self._api.transport, ack_wait_of(self.cached_info)
        make: type[Message[Any]] = Message if self._payloads is None else TypedMessage
        messages: list[Message[P]] = []
        for count, at in fetch.arrivals:
            delivery = Delivery(transport, at, ack_wait, self._api.timeout, self._payloads)
            frames = fetch.frames[len(messages) : count]
            messages += [make(frame, delivery) for frame in frames]
        return messages

    def _first(self, fetch: Fetch) -> Message[P] | None:
        if not fetch.frames:
            return None
        at = fetch.arrivals[0][1]
        api = self._api
        wait = ack_wait_of(self.cached_info)
        delivery = Delivery(api.transport, at, wait, api.timeout, self._payloads)
        return message_of(fetch.frames[0], delivery)

    def _note_pin(self, group: str, fetch: Fetch) -> None:
        if fetch.end is BatchEnd.UNPINNED:
            self._channels.pins.drop(group)
        pin = pin_of(fetch.frames[-1]) if fetch.frames else None
        if pin is not None:
            self._channels.pins.note(group, pin)

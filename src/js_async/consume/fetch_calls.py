"""Pulling messages from a consumer in batches and one by one."""

from __future__ import annotations

from collections.abc import Iterable
from itertools import repeat
from typing import TYPE_CHECKING, Final

from attrs import evolve

from js_async.api.api import Api
from js_async.consume.delivery import Delivery, ack_wait_of, pull_bounds
from js_async.runtime.concurrency import sleep
from js_async.consume.pull_subscription import PullChannels
from js_async.consume.message import Message, message_of, messages_of
from twinstream.core.consume.batch import Batch, BatchEnd
from twinstream.core.deadline import Deadline, Seconds, seconds
from twinstream.errors import AlreadyAcknowledged, NoResponders, TwinstreamError
from twinstream.core.consume.fetch import Fetch
from twinstream.core.base.check_arguments import check_kind
from twinstream.core.base.nats_py_names import hint_keywords
from twinstream.core.consume.pin import pin_of
from twinstream.core.consume.pull_error import of_consumer
from twinstream.core.consume.pull_request import Priority, PullLimits, Wait, fetch_limits

if TYPE_CHECKING:
    from js_async.consume.fetch_messages import FetchMessages
    from twinstream.models import ConsumerInfo

__all__ = ["FetchCalls"]

# How long a cluster may need to make the leader of a new consumer known (seconds), how long a
# fetch that does not wait is repeated, and the first pause.
_SPREADING: Final = 0.5
_LEAST: Final = 0.1
_FIRST_PAUSE: Final = 0.01


class FetchCalls:
    """The part of a consumer that fetches."""

    def __init__(self, api: Api, stream: str, name: str, info: ConsumerInfo | None) -> None:
        self._api: Final = api
        self._stream: Final = stream
        self._name: Final = name
        self._channels: Final = PullChannels(api, stream, name)
        # Whether any fetch was answered: until then its leader may not be known everywhere.
        self._answered = False
        self.cached_info: ConsumerInfo | None = info

    @hint_keywords
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
    ) -> Batch[Message]:
        """Fetch up to `max_messages`, or up to `max_bytes` as the server counts them, or both.

        `wait` says when to end before that: "full" waits `timeout` seconds for all of them,
        "first" waits so long for some, "none" takes what is there now. The batch's `reason` says
        why it ended; an empty one is no error. Returns one second after `timeout` at the latest;
        None waits without limit, in rounds of 30 s, also for a connection that is made again.
        `two_step` asks for what is there first, and waits only when that is nothing (ADR-13). A
        server that may not deliver now, as `max_ack_pending` is reached, does not answer before.
        `heartbeat` is the interval of idle heartbeats (0.5 to 30 s; 5 s from a `timeout` of 10 s
        on, none below): the fetch ends when two are missing.

        With "full" the first message waits for the last one: keep `timeout` below the consumer's
        `ack_wait`, or the server delivers it anew meanwhile (`Message.is_late`).

        Raises `PullRefused` beyond a limit of the consumer, `NoResponders` when there is no such
        consumer, `ConsumerDeleted`, `ConsumerIsPush`, `BadPull`, `PullError` when the first
        message alone is bigger than `max_bytes`, `RequestTimeout` when there was no link,
        `PermissionDenied`. The first fetch of a consumer that the server has just shown or created
        is repeated for half a second before it raises `NoResponders`: in a cluster it may take some
        milliseconds until every server can reach it.
        """
        most = self._most(max_messages, max_bytes)
        if timeout is None:
            return await self._fetch_rounds(most, max_bytes, wait, priority, heartbeat)
        limits = fetch_limits(most, max_bytes, timeout, wait, priority, heartbeat)
        if two_step and not limits.no_wait:
            return self._batch(await self._fetch_in_two_steps(limits, seconds(timeout)))
        return self._batch(await self._fetch(limits, seconds(timeout)))

    def fetch_each(
        self,
        max_messages: int | None = None,
        *,
        timeout: Seconds = 5.0,
        max_bytes: int | None = None,
        wait: Wait = "full",
        priority: Priority | None = None,
        heartbeat: Seconds | None = None,
    ) -> FetchMessages:
        """Return an iteration over what `fetch` would return, each message as soon as it arrives.

        It ends when the fetch does, and its `reason` says why. The request goes out with the first
        message that is asked for. Arguments and errors are those of `fetch`.
        """
        from js_async.consume.fetch_messages import FetchMessages

        most = self._most(max_messages, max_bytes)
        limits = fetch_limits(most, max_bytes, timeout, wait, priority, heartbeat)
        return FetchMessages(
            f"{self._stream}/{self._name}",
            self._api,
            self._channels,
            limits,
            seconds(timeout),
            ack_wait_of(self.cached_info),
            lambda fetch: self._conclude(limits, fetch),
        )

    async def _fetch_rounds(
        self,
        most: int | None,
        max_bytes: int | None,
        wait: Wait,
        priority: Priority | None,
        heartbeat: Seconds | None,
    ) -> Batch[Message]:
        from js_async.consume import fetch_rounds as _fetch_rounds

        longest = _fetch_rounds.ROUND
        length = min(longest, pull_bounds(self.cached_info).max_expires or longest)
        limits = fetch_limits(most, max_bytes, length, wait, priority, heartbeat)

        async def once(left: int, left_bytes: int | None) -> Batch[Message]:
            part = evolve(limits, max_messages=left, max_bytes=left_bytes)
            return self._batch(await self._fetch(part, length))

        return await _fetch_rounds.fetch_rounds(
            once, limits.max_messages, max_bytes, full=wait == "full", pinned=limits.may_pin
        )

    async def _fetch_in_two_steps(self, limits: PullLimits, patience: float) -> Fetch:
        """Ask for what is there now, and wait only when that is nothing (ADR-13)."""
        now = evolve(limits, no_wait=True, expires=None, heartbeat=float("inf"))
        fetch = await self._fetch(now, 0.0)
        return fetch if fetch.frames else await self._fetch(limits, patience)

    def _most(self, max_messages: int | None, max_bytes: int | None) -> int | None:
        """Return the most messages of a fetch: by bytes alone, as many as the consumer allows."""
        if max_messages is not None or max_bytes is None:
            return max_messages
        return pull_bounds(self.cached_info).max_batch

    async def next(
        self,
        *,
        timeout: Seconds | None = 5.0,
        two_step: bool = False,
        priority: Priority | None = None,
        heartbeat: Seconds | None = None,
    ) -> Message | None:
        """Return one message, or None when none came within `timeout` seconds.

        Asks for exactly one, when it is called; takes and raises what `fetch` does.
        """
        if timeout is None:
            batch = await self._fetch_rounds(1, None, "full", priority, heartbeat)
            return batch[0] if batch else None
        limits = fetch_limits(1, None, timeout, "full", priority, heartbeat)
        if two_step and not limits.no_wait:
            return self._first(await self._fetch_in_two_steps(limits, seconds(timeout)))
        return self._first(await self._fetch(limits, limits.expires or 0.0))

    async def ack_next(
        self, message: Message, *, timeout: Seconds = 5.0, priority: Priority | None = None
    ) -> Message | None:
        """Acknowledge a message and ask for the next one in one word (+NXT).

        Returns None when none came within `timeout` seconds. Raises `AlreadyAcknowledged`, and
        what `fetch` raises.
        """
        return self._first(await self._ack_fetch(message, 1, timeout, "full", priority))

    async def ack_fetch(
        self,
        message: Message,
        max_messages: int,
        *,
        timeout: Seconds = 5.0,
        wait: Wait = "full",
        priority: Priority | None = None,
    ) -> Batch[Message]:
        """Acknowledge a message and fetch the next ones in one word; the rest is as in `fetch`.

        Raises `AlreadyAcknowledged`, and what `fetch` raises.
        """
        return self._batch(await self._ack_fetch(message, max_messages, timeout, wait, priority))

    async def _ack_fetch(
        self,
        message: Message,
        max_messages: int,
        timeout: Seconds,
        wait: Wait,
        priority: Priority | None,
    ) -> Fetch:
        check_kind(message, Message, "message", "a Message of this consumer")
        if message.is_acknowledged:
            raise AlreadyAcknowledged(f"{message.subject}: acknowledged already")
        limits = fetch_limits(max_messages, None, timeout, wait, priority)
        fetch = await self._fetch(limits, limits.expires or 0.0, message._reply_bytes)
        message._finished()
        return fetch

    async def double_ack(
        self, messages: Iterable[Message], *, timeout: Seconds | None = None
    ) -> list[Message]:
        """Acknowledge many messages, such as a batch, and return those that are not sure to count.

        All are sent at once; it returns when the server has confirmed each, or after `timeout`
        seconds. A message that is returned may come again: its confirmation is missing, and it may
        be acknowledged anew, or came so late that it was delivered again before.

        Raises `AlreadyAcknowledged` before anything is sent, `RequestTimeout` when there was no
        link.
        """
        from js_async.consume.double_ack import double_ack

        given = list(messages)
        for message in given:
            check_kind(message, Message, "message", "a Message of this consumer")
        return await double_ack(self._api.transport, given, self._api.deadline(timeout))

    async def _fetch(
        self, limits: PullLimits, patience: float, instead: bytes | None = None
    ) -> Fetch:
        fetch = await self._fetch_once(limits, patience, instead)
        if isinstance(fetch.error, NoResponders) and not self._answered and self.cached_info:
            fetch = await self._fetch_again(limits, patience)
        self._conclude(limits, fetch)
        return fetch

    def _conclude(self, limits: PullLimits, fetch: Fetch) -> None:
        """Note what a fetch showed; raises the error by which it ended."""
        self._answered = self._answered or not isinstance(fetch.error, NoResponders)
        if limits.priority is not None and limits.priority.may_pin:
            self._note_pin(limits.priority.group, fetch)
        if fetch.error is not None:
            raise of_consumer(fetch.error, self._stream, self._name)

    async def _fetch_again(self, limits: PullLimits, patience: float) -> Fetch:
        """Repeat the first fetch of a consumer that the server has shown to be there.

        In a cluster, some milliseconds pass until every server knows where its leader listens.
        """
        end, pause = Deadline.after(min(max(patience, _LEAST), _SPREADING)), _FIRST_PAUSE
        while True:
            await sleep(min(pause, end.remaining()))
            pause *= 2
            fetch = await self._fetch_once(limits, patience)
            if not isinstance(fetch.error, NoResponders) or end.expired():
                return fetch

    async def _fetch_once(
        self, limits: PullLimits, patience: float, instead: bytes | None = None
    ) -> Fetch:
        channel = self._channels.take_idle() or await self._channels.take()
        clean = False
        try:
            fetch = await channel.fetch(limits, patience, instead)
            clean = fetch.is_clean
        finally:
            if clean:
                self._channels.put(channel)
            else:
                # Cut short in the middle: what arrived goes back to the server.
                await self._channels.end(channel)
        return fetch

    def _batch(self, fetch: Fetch) -> Batch[Message]:
        if fetch.end is None:
            raise TwinstreamError("the fetch has no end: please report this")
        return Batch(self._messages_of(fetch), fetch.end, fetch.detail)

    def _messages_of(self, fetch: Fetch) -> list[Message]:
        """Return the messages of a fetch; each knows when it arrived, which may be long ago."""
        transport, ack_wait = self._api.transport, ack_wait_of(self.cached_info)
        messages: list[Message] = []
        for count, at in fetch.arrivals:
            delivery = Delivery(transport, at, ack_wait, self._api.timeout)
            frames = fetch.frames[len(messages) : count]
            messages += messages_of(frames, repeat(delivery))
        return messages

    def _first(self, fetch: Fetch) -> Message | None:
        if not fetch.frames:
            return None
        at = fetch.arrivals[0][1]
        api = self._api
        delivery = Delivery(api.transport, at, ack_wait_of(self.cached_info), api.timeout)
        return message_of(fetch.frames[0], delivery)

    def _note_pin(self, group: str, fetch: Fetch) -> None:
        if fetch.end is BatchEnd.UNPINNED:
            self._channels.pins.drop(group)
        pin = pin_of(fetch.frames[-1]) if fetch.frames else None
        if pin is not None:
            self._channels.pins.note(group, pin)

"""The iterator over the messages of one fetch."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from functools import partial
from typing import Final

from js_async.api.api import Api
from js_async.consume.delivery import Delivery
from js_async.consume.item_source import ItemSource
from js_async.consume.iterator import Iteration
from js_async.consume.message import Message
from js_async.consume.pull_subscription import PullChannel, PullChannels
from js_async.runtime.concurrency import Forks, sleep
from twinstream.core.consume.batch import BatchEnd
from twinstream.core.consume.fetch import Fetch
from twinstream.core.consume.pull_request import PullLimits
from twinstream.core.deadline import NEVER, Deadline
from twinstream.core.on_failure import AsyncOnFailure
from twinstream.core.server_faults.delays import SPREADING_PAUSES
from twinstream.errors import NoResponders, RequestTimeout
from twinstream.models.codec.records import frozen

__all__ = ["FetchBuffer", "FetchMessages", "FetchRequest"]


@frozen
class FetchRequest:
    """The request of a fetch."""

    limits: PullLimits
    patience: float
    """Seconds until the fetch times out."""
    ack_wait: float | None
    """The `ack_wait` of the consumer in seconds, or None if it is unknown or not used."""
    spreading: float
    """For how many seconds the request is repeated while it has no responders."""


class FetchBuffer(ItemSource[Message]):
    """The messages of one fetch as they arrive. The first `take` sends the request."""

    def __init__(
        self,
        label: str,
        api: Api,
        channels: PullChannels,
        request: FetchRequest,
        on_end: Callable[[Fetch], None],
    ) -> None:
        super().__init__(label)
        self._transport: Final = api.transport
        self._timeout: Final = api.timeout
        self._channels: Final = channels
        self._request: Final = request
        self._repeats = Deadline(0.0)
        self._pauses: Final = iter(SPREADING_PAUSES)
        self._on_end: Final = on_end
        self._forks: Final = Forks.count
        self._channel: PullChannel | None = None
        self._fetch: Fetch | None = None
        self._given = 0
        self._portion = 0
        self._delivery = Delivery(api.transport, 0.0, None, api.timeout)
        self._closed = False

    @property
    def reason(self) -> BatchEnd | None:
        """The reason why the fetch ended. None if it has not ended, or if an error ended it."""
        return self._fetch.end if self._fetch is not None else None

    @property
    def detail(self) -> str:
        """An explanation of `reason`, often the server's status text; empty if there is none."""
        return self._fetch.detail if self._fetch is not None else ""

    @property
    def buffered(self) -> int:
        """The number of messages that have arrived and were not taken."""
        here = len(self._fetch.frames) - self._given if self._fetch is not None else 0
        return here + (len(self._channel.box.frames) if self._channel is not None else 0)

    @property
    def is_ended(self) -> bool:
        """Whether the buffer is closed, or the fetch has ended and no messages are buffered."""
        fetch = self._fetch
        return self._closed or (
            fetch is not None and fetch.is_over and self._given == len(fetch.frames)
        )

    async def _take_next(self, deadline: Deadline) -> Message | None:
        if self._closed:
            return None
        fetch = self._fetch or await self._begin()
        while self._given == len(fetch.frames):
            channel = self._channel
            if channel is not None and isinstance(fetch.error, NoResponders):
                fetch = await self._repeat(channel, fetch, deadline)
                if self._closed and not fetch.is_over:
                    return None
            if fetch.is_over or channel is None:
                await self._leave()
                return None
            wake_at = deadline.earlier(fetch.wake_at())
            await self._transport.wait(channel.box.signal, wake_at)
            if self._closed:
                return None
            channel.look(fetch)
            if not fetch.is_over:
                await channel.doubt(fetch)
            arrived = fetch.is_over or self._given < len(fetch.frames)
            if not arrived and deadline.expired():
                raise RequestTimeout("no message in time")
        return self._hand_over(fetch)

    def _hand_over(self, fetch: Fetch) -> Message:
        if self._given == self._portion:
            # Messages that arrived at the same time share a delivery.
            self._portion, at = next(each for each in fetch.arrivals if each[0] > self._given)
            self._delivery = Delivery(self._transport, at, self._request.ack_wait, self._timeout)
        frame = fetch.frames[self._given]
        self._given += 1
        return Message(frame, self._delivery)

    async def _begin(self) -> Fetch:
        channel = self._channels.take_idle() or await self._channels.take()
        async with AsyncOnFailure(partial(self._channels.end, channel)):
            self._fetch = await channel.begin(self._request.limits, self._request.patience)
        self._channel = channel
        self._repeats = Deadline.after(self._request.spreading)
        return self._fetch

    async def _repeat(self, channel: PullChannel, fetch: Fetch, deadline: Deadline) -> Fetch:
        """Send the request again after a pause, and return the new fetch.

        The pause ends at `deadline`. If the time for repeats has passed, return the given fetch,
        which had no responders.
        """
        pause = next(self._pauses)
        if self._repeats.remaining() <= pause:
            return fetch
        await sleep(min(pause, deadline.remaining()))
        self._fetch = await channel.begin(self._request.limits, self._request.patience)
        return self._fetch

    async def _leave(self) -> None:
        """Release the channel, and send a NAK to the server for each message that was not taken.

        Raises the error of the fetch, if there was one. Does nothing if no channel is in use.
        """
        channel, fetch = self._channel, self._fetch
        if channel is None or fetch is None:
            return
        rest = fetch.frames[self._given :]
        channel.box.frames.extendleft(reversed(rest))
        del fetch.frames[self._given :]
        if fetch.is_over and fetch.is_clean and not channel.box.frames:
            self._channels.put(channel)
        else:
            await self._channels.end(channel)
        self._channel = None
        self._on_end(fetch)

    async def close(self) -> None:
        """End the fetch, and send a NAK to the server for each message that was not taken."""
        self._closed = True
        if self._channel is not None:
            self._channel.box.signal.set()
        held = False
        try:
            # Another caller may be taking a message now: wait until its call has ended.
            held = await self.turn.acquire(NEVER)
            await self._leave()
        finally:
            self.turn.release(held)

    def __del__(self) -> None:
        channel = getattr(self, "_channel", None)
        if channel is None or self._transport.is_closed or self._forks != Forks.count:
            return
        warnings.warn(
            f"{self.label}: a fetch was left before its end; messages it requested are"
            " redelivered after ack_wait. Use it in a `with` block, or close it",
            ResourceWarning,
            stacklevel=2,
        )


class FetchMessages(Iteration[Message]):
    """An iterator over the messages of one fetch as they arrive. `Consumer.fetch_each` creates it.

    It sends the request when the caller takes the first message. It ends when the fetch ends, and
    `reason` states why. If your program may leave the iteration early, use the iterator in a `with`
    block, or close it. The messages that were not taken then return to the server.
    """

    def __init__(self, buffer: FetchBuffer) -> None:
        super().__init__(buffer)
        self._buffer: Final = buffer

    @property
    def reason(self) -> BatchEnd | None:
        """The reason why the fetch ended. None if it has not ended, or if an error ended it."""
        return self._buffer.reason

    @property
    def detail(self) -> str:
        """An explanation of `reason`, often the server's status text; empty if there is none."""
        return self._buffer.detail

    @property
    def is_ended(self) -> bool:
        """Whether the iterator is closed, or the fetch has ended and no messages are buffered."""
        return self._buffer.is_ended

    async def close(self) -> None:
        """End the iterator, and send a NAK to the server for each message that was not taken."""
        if self._is_parents:
            return
        await self._buffer.close()

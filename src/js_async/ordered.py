"""Reading a stream in order, without gaps and without acknowledgements, through any trouble."""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

from js_async import _control
from js_async._api import Api
from js_async._create import create_consumer
from js_async._io import Signal
from js_async._iteration import Iteration
from js_async._missing import Missing
from js_async._pulls import PullChannels
from js_async.message import Message
from js_async.messages import Messages
from js_core.deadline import Deadline
from js_core.errors import (
    BadArgument,
    ConnectionLost,
    ConsumerDeleted,
    ConsumerNotFound,
    JetStreamError,
    NoResponders,
    RequestTimeout,
    StreamNotFound,
    TwinstreamError,
)
from js_core.ordered import OrderedRead
from js_core.pull_request import PullLimits
from js_core.reports import PullReport, PullWarning, Recreated
from js_core.told import check_told
from js_models import ConsumerConfig

__all__ = ["OrderedMessages"]

_FIRST_PAUSE: Final = 0.1
_LONGEST_PAUSE: Final = 10.0
_TRANSIENT: Final = (NoResponders, RequestTimeout, ConnectionLost)


class OrderedMessages(Iteration[Message]):
    """Iterates over a stream in order until it is closed; made by `Stream.ordered`.

    Every message comes once, whatever happens to the link, the consumer or its leader. Raises
    `StreamNotFound` when the stream is gone, `ConnectionClosed` when the connection is.
    """

    def __init__(
        self,
        api: Api,
        stream: str,
        config: ConsumerConfig,
        limits: PullLimits,
        on_report: Callable[[PullReport], None] | None,
    ) -> None:
        super().__init__()
        self._api: Final = api
        self._stream: Final = stream
        self._limits: Final = limits
        check_told(on_report, "on_report")
        self._on_report: Final = on_report
        self._read: Final = OrderedRead(config, api.transport.tokens.name())
        self._messages: Messages | None = None
        self._ended: Final = Signal()
        self._closed = False
        self._pause = _FIRST_PAUSE
        self.resets = 0
        """How often a new consumer was needed."""

    @property
    def position(self) -> int:
        """The stream sequence of the last message handed over: go on with `start_seq` one above."""
        return self._read.position

    # ---- iterating

    async def take(self, deadline: Deadline) -> Message | None:
        """Return the next message in order, or None when the iteration was closed."""
        while not self._closed:
            messages = self._messages
            if messages is None:
                await self._begin(deadline)
                continue
            try:
                message = await messages.take(deadline)
            except (ConsumerDeleted, ConnectionLost, NoResponders) as error:
                await self._reset(str(error))
                continue
            if message is None:
                # Its consumer is being left by somebody else, or was, by a call that was cut short.
                await self._leave()
                continue
            if not self._read.is_in_order(message.metadata):
                await self._reset(f"a gap behind stream sequence {self.position}")
            elif self._read.take(message.metadata):
                return message
        # Closed by somebody else, while a consumer was being made perhaps.
        await self._leave()
        return None

    # ---- consumers come and go

    async def _begin(self, deadline: Deadline) -> None:
        """Make the next consumer; the first attempt of all raises, later ones try again."""
        first = self.resets == 0
        while not self._closed:
            try:
                await self._api.transport.ready(deadline)
                await self._make(self._api.deadline().earlier(deadline.at))
            except (StreamNotFound, BadArgument):
                raise
            except (*_TRANSIENT, JetStreamError) as error:
                if first and not isinstance(error, ConnectionLost):
                    raise
                await self._wait(error, deadline)
                continue
            self._pause = _FIRST_PAUSE
            return

    async def _wait(self, error: TwinstreamError, deadline: Deadline) -> None:
        self._report(PullWarning(f"no consumer for the ordered read yet: {error}"))
        await self._ended.sleep(Deadline.after(self._pause).earlier(deadline.at))
        self._pause = min(self._pause * 2, _LONGEST_PAUSE)
        # Not after one more attempt: that would fail for want of time, and hide why this one did.
        if deadline.expired() and not self._closed:
            raise RequestTimeout("no message in time") from error

    async def _make(self, deadline: Deadline) -> None:
        api, read = self._api, self._read
        stream = await api.stream_info(self._stream, deadline)
        if read.found_stream(stream.created):
            self._report(Recreated(self._stream))
        config = read.next_config(stream.config.consumer_limits)
        info = await create_consumer(api, self._stream, config, "create", deadline)
        read.made(info)
        channels = PullChannels(api, self._stream, info.name)
        missing = Missing(api, channels, self._stream, info.name, info, "raise")
        self._messages = Messages(
            missing, self._limits, None, self._on_report, give_back=False, fragile=True
        )

    async def _reset(self, reason: str) -> None:
        self.resets += 1
        self._report(PullWarning(f"the ordered read starts a new consumer: {reason}"))
        await self._leave()

    async def _leave(self) -> None:
        """Close the present consumer; what cannot be deleted vanishes by itself."""
        messages, name = self._messages, self._read.name
        if messages is None:
            return
        await messages.close()
        if messages is not self._messages:
            # Somebody else left it meanwhile; there may be another one.
            return
        self._messages = None
        if self._api.transport.is_connected:
            try:
                await _control.delete(self._api, self._stream, name)
            except (ConsumerNotFound, *_TRANSIENT, JetStreamError):
                return

    def _report(self, report: PullReport) -> None:
        if self._on_report is not None:
            self._on_report(report)

    async def close(self) -> None:
        """End the iteration and delete its consumer."""
        self._closed = True
        self._ended.set()
        await self._leave()

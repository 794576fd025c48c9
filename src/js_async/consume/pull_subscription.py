"""The subscriptions through which a consumer pulls."""

from __future__ import annotations

from typing import Final

from attrs import evolve

from js_async.api.api import Api
from js_async.runtime.concurrency import shielded
from js_async.client.transport import Box
from twinstream.core.consume.acks import NEXT, nak
from twinstream.core.deadline import Deadline, monotonic
from twinstream.errors import ConnectionClosed, RequestTimeout
from twinstream.core.consume.fetch import GRACE, Fetch
from twinstream.core.log.logger import Log
from twinstream.core.consume.pin import Pins
from twinstream.core.wire.protocol import Frame
from twinstream.core.consume.pull_request import PullLimits, request_body
from twinstream.core.wire.status import is_status

__all__ = ["PullChannel", "PullChannels"]

# What a fetch that waited for the link is still given for its answer (seconds).
_LEAST: Final = 0.1
_LOG: Final = Log("consumer")


class PullChannel:
    """One subscription for the answers to pulls, used by one fetch or buffer at a time.

    A delivered message comes under its stored subject, so nothing but the subscription tells
    whose it is; statuses come under the request's own reply subject.
    """

    def __init__(self, api: Api, subject: bytes, prefix: bytes, box: Box, pins: Pins) -> None:
        self._api: Final = api
        self._pins: Final = pins
        self._subject: Final = subject
        self.prefix: Final = prefix
        self.box: Final = box
        # The connection over which the request of the present fetch went out.
        self._epoch = 0
        box.asks = subject

    def token(self) -> bytes:
        """Return the token of a new request."""
        return self._api.transport.tokens.next_bytes()

    async def pull(
        self, token: bytes, batch: int, max_bytes: int | None, limits: PullLimits
    ) -> None:
        """Publish a pull request."""
        body = self._body(batch, max_bytes, limits)
        if _LOG.debugs():
            self._log_pull(batch, max_bytes)
        transport, reply = self._api.transport, self.prefix + token
        if not transport.try_send(self._subject, reply, b"", body):
            await transport.send(self._subject, reply, b"", body, True)

    def _log_pull(self, batch: int, max_bytes: int | None) -> None:
        from twinstream.core.log.events import PullSent

        stream, consumer = self._subject.decode().split(".")[-2:]
        _LOG(PullSent(batch, max_bytes, stream, consumer))

    def _body(self, batch: int, max_bytes: int | None, limits: PullLimits) -> bytes:
        pin = self._pins.get(limits.priority.group) if limits.priority is not None else None
        return request_body(batch, max_bytes, limits, pin)

    async def fetch(
        self, limits: PullLimits, patience: float, instead: bytes | None = None
    ) -> Fetch:
        """Run one fetch to its end. Cut short, it leaves what arrived in the mailbox."""
        transport, box = self._api.transport, self.box
        fetch = await self.begin(limits, patience, instead)
        try:
            if transport.epoch != self._epoch:
                fetch.lost()
            while not fetch.is_over:
                await transport.wait(box.signal, Deadline(fetch.wake_at()))
                self.look(fetch)
        except BaseException:
            box.frames.extendleft(reversed(fetch.frames))
            raise
        return fetch

    async def begin(
        self, limits: PullLimits, patience: float, instead: bytes | None = None
    ) -> Fetch:
        """Send the request of a fetch.

        It goes to the consumer, or `instead` to the reply of a message: ack and next.
        """
        transport, box = self._api.transport, self.box
        if not transport.is_connected:
            limits, patience = await self._connected(limits, patience)
        if box.frames:
            await self.give_back(box.take_all())
        self._epoch = transport.epoch
        token = self.token()
        subject, reply = self._subject, self.prefix + token
        if _LOG.debugs():
            self._log_pull(limits.max_messages, limits.max_bytes)
        word = b""
        if instead is not None:
            box.asks = subject = instead
            word = NEXT
        body = word + self._body(limits.max_messages, limits.max_bytes, limits)
        # The flag goes down before the request goes out, and later before the mailbox is looked
        # into: nothing is missed.
        box.signal.clear()
        if not transport.try_send(subject, reply, b"", body, True):
            # The server may have left since the last request.
            limits, patience = await self._connected(limits, patience)
            self._epoch = transport.epoch
            body = word + self._body(limits.max_messages, limits.max_bytes, limits)
            await transport.send(subject, reply, b"", body, True)
        # Made while the server works on the request.
        return Fetch(limits, token, monotonic(), patience)

    def look(self, fetch: Fetch) -> None:
        """Take what arrived for a fetch, and notice its end; raises why nothing can come."""
        transport, box = self._api.transport, self.box
        box.signal.clear()
        if fetch.take_all(box.frames, box.heard_at):
            return
        if box.error is not None:
            raise box.error
        if transport.epoch != self._epoch or not transport.is_connected:
            fetch.lost()
        fetch.check(monotonic(), box.heard_at)

    async def _connected(self, limits: PullLimits, patience: float) -> tuple[PullLimits, float]:
        """Return when there is a link, with what is left of the time of a fetch."""
        end = Deadline.after(patience)
        await self._api.transport.ready(self._api.deadline().earlier(end.at + GRACE))
        if limits.expires is None or not patience:
            return limits, patience
        left = max(end.remaining(), _LEAST)
        return evolve(limits, expires=left), left

    async def give_back(self, frames: list[Frame]) -> None:
        """Ask for another delivery of messages that nobody was given."""
        word = nak(None)
        try:
            for frame in frames:
                if frame[1] and not is_status(frame):
                    await self._api.transport.send(frame[1], b"", b"", word)
        except (ConnectionClosed, RequestTimeout):
            # Without a link: they come again after the consumer's ack_wait.
            return


class PullChannels:
    """The channels of one consumer: opened on demand, their inboxes used again when left clean."""

    def __init__(self, api: Api, stream: str, consumer: str) -> None:
        self._api: Final = api
        self._idle: Final = api.transport.replies.idle_inboxes
        self._subject: Final = api.subjects.next_message(stream, consumer).encode()
        self.pins: Final = Pins()

    def take_idle(self) -> PullChannel | None:
        """Return a channel whose inbox is open and not in use, if there is one."""
        inbox = self._idle.take()
        return None if inbox is None else self._channel(*inbox)

    async def take(self) -> PullChannel:
        """Return a channel that nobody else uses."""
        idle = self.take_idle()
        if idle is not None:
            return idle
        transport = self._api.transport
        while (refused := self._idle.take_refused()) is not None:
            await transport.close_mailbox(refused)
        prefix = transport.tokens.inbox().encode() + b"."
        return self._channel(prefix, await transport.open_mailbox(prefix + b"*"))

    def _channel(self, prefix: bytes, box: Box) -> PullChannel:
        return PullChannel(self._api, self._subject, prefix, box, self.pins)

    def put(self, channel: PullChannel) -> None:
        """Take a channel back on which nothing can come any more."""
        self._idle.put(channel.prefix, channel.box)

    async def end(self, channel: PullChannel) -> None:
        """Close a channel on which more may come, which ends its requests."""
        await shielded(lambda: self._end(channel))

    async def _end(self, channel: PullChannel) -> None:
        transport = self._api.transport
        try:
            await transport.close_mailbox(channel.box, settle=True)
        finally:
            # Also where the whole program ends meanwhile: what is here is not kept.
            if transport.is_connected:
                await channel.give_back(channel.box.take_all())

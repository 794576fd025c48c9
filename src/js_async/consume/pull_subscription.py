"""Pull channels: subscriptions for the responses to pull requests."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from attrs import evolve

from js_async.api.api import Api
from js_async.client.transport import Box
from js_async.runtime.concurrency import TimedLock, shielded
from twinstream.core.consume.acks import nak
from twinstream.core.consume.fetch import GRACE, Fetch
from twinstream.core.consume.pin import Pins
from twinstream.core.consume.pull_request import PullLimits, request_body
from twinstream.core.deadline import Deadline, monotonic
from twinstream.core.hooks import HOOKS, reached
from twinstream.core.log.logger import Log
from twinstream.core.wire.protocol import Frame
from twinstream.core.wire.status import is_status
from twinstream.errors import ConnectionClosed, RequestTimeout

if TYPE_CHECKING:
    from twinstream.core.wire.single_answers import SingleAnswers

__all__ = ["PullChannel", "PullChannels"]

# The minimum timeout of a request that had to wait for the connection (seconds).
_LEAST: Final = 0.1
# The longest wait for a pull request that is being sent when its channel is closed (seconds).
_SENDING: Final = 1.0
_LOG: Final = Log("consumer")


class PullChannel:
    """A subscription for the responses to pull requests.

    One fetch or iterator uses it at a time. `owner` is that of the mailbox. Messages arrive with
    their stored subject, so only the subscription shows to which request they belong. Statuses
    arrive with the reply subject of the request that they answer.
    """

    def __init__(
        self,
        api: Api,
        subject: bytes,
        prefix: bytes,
        box: Box,
        pins: Pins,
        owner: str = "",
    ) -> None:
        self._api: Final = api
        self._pins: Final = pins
        self._subject: Final = subject
        self.prefix: Final = prefix
        self.box: Final = box
        # The `epoch` of the transport when the current fetch sent its request.
        self.epoch = 0
        # Held while a pull request is sent. See `close`.
        self._sending: Final = TimedLock()
        self._is_closed = False
        box.asks = subject
        box.owner = owner

    def token(self) -> bytes:
        """Return the token for a new request. It is the last token of the reply subject."""
        return self._api.transport.tokens.next_bytes()

    async def pull(
        self, token: bytes, batch: int, max_bytes: int | None, limits: PullLimits
    ) -> None:
        """Publish a pull request, unless the channel was closed meanwhile."""
        transport, is_mine = self._api.transport, False
        # Wait for the connection here, so that `close` need not wait for it.
        await transport.ready(self._api.deadline())
        try:
            is_mine = await self._sending.acquire(self._api.deadline())
            if not self._is_closed:
                if HOOKS:
                    reached("pull: before send", self)
                await self._send(token, batch, max_bytes, limits)
        finally:
            self._sending.release(is_mine)

    async def _send(
        self, token: bytes, batch: int, max_bytes: int | None, limits: PullLimits
    ) -> None:
        body = self._body(batch, max_bytes, limits)
        if self._api.transport.observers is not None or _LOG.debugs():
            self._note_pull(batch, max_bytes)
        await self._api.transport.send(self._subject, self.prefix + token, b"", body, True)

    async def close(self) -> None:
        """Unsubscribe. The mailbox then contains everything that the server sent.

        If another caller is just sending a pull request, wait for that, at most 1 s. After the
        UNSUB, the server would deliver messages for it for a moment. They would not arrive, and
        wait for their redelivery after ack_wait.
        """
        self._is_closed = True
        transport, is_mine = self._api.transport, False
        try:
            if transport.is_connected:
                is_mine = await self._sending.acquire(Deadline.after(_SENDING))
        finally:
            self._sending.release(is_mine)
            await transport.close_mailbox(self.box, settle=True)

    def _note_pull(self, batch: int, max_bytes: int | None) -> None:
        from twinstream.core.log.events import PullSent

        stream, consumer = self._subject.decode().split(".")[-2:]
        event = PullSent(batch, max_bytes, stream, consumer)
        if self._api.transport.observers is not None:
            self._api.transport.observers.note(event)
        _LOG(event)

    def _body(self, batch: int, max_bytes: int | None, limits: PullLimits) -> bytes:
        pin = self._pins.get(limits.priority.group) if limits.priority is not None else None
        return request_body(batch, max_bytes, limits, pin)

    async def begin(self, limits: PullLimits, patience: float) -> Fetch:
        """Wait until connected, send the request of a fetch, and return the state of the fetch."""
        transport, box, subject = self._api.transport, self.box, self._subject
        if not transport.is_connected:
            limits, patience = await self._wait_until_connected(limits, patience)
        if box.frames:
            await self.give_back(box.take_all())
        self.epoch = transport.epoch
        token = self.token()
        reply = self.prefix + token
        body = self._body(limits.max_messages, limits.max_bytes, limits)
        # Clear the signal before the request is sent, and later before reading the mailbox, so that
        # no arrival is missed.
        box.signal.clear()
        if not transport.write(subject, reply, b"", body, True):
            # The connection may have been lost since the last request.
            limits, patience = await self._wait_until_connected(limits, patience)
            self.epoch = transport.epoch
            body = self._body(limits.max_messages, limits.max_bytes, limits)
            await transport.send(subject, reply, b"", body, True)
        # Note the request only now, while the server processes it.
        if self._api.transport.observers is not None or _LOG.debugs():
            self._note_pull(limits.max_messages, limits.max_bytes)
        return Fetch(limits, token, monotonic(), patience)

    # ---- imports that let only the first response to a request through

    @property
    def gets_several(self) -> bool:
        """Whether a probe has shown that several responses to a pull arrive."""
        return self._pulls_of in self._api.transport.replies.several

    def note_several(self) -> None:
        """Record that several responses to a pull arrived."""
        self._api.transport.replies.several.add(self._pulls_of)

    @property
    def _pulls_of(self) -> str:
        return f"{self._api.subjects.prefix}.CONSUMER.MSG.NEXT"

    def single_answers(self) -> SingleAnswers:
        """Return the error to raise if only the first response to each pull arrives."""
        from twinstream.core.wire.single_answers import SingleAnswers

        return SingleAnswers.of(self._subject.decode(), self._api.subjects.prefix)

    async def probe(self, token: bytes, limits: PullLimits) -> None:
        """Send a pull request that the server answers at least twice within a moment.

        `limits` are those of the other pull requests.
        """
        from twinstream.core.wire.single_answers import (
            PROBE_EXPIRES,
            PROBE_HEARTBEAT,
            PROBE_MESSAGES,
        )

        probing = evolve(
            limits, expires=PROBE_EXPIRES, heartbeat=PROBE_HEARTBEAT, no_wait=False, max_bytes=None
        )
        await self.pull(token, PROBE_MESSAGES, None, probing)

    async def doubt(self, fetch: Fetch) -> None:
        """Find out why a fetch got one response and then nothing for a moment.

        Does nothing before that. Raises `SingleAnswers` if each pull gets only one response.
        """
        now = monotonic()
        if now < fetch.doubt_at():
            return
        if not fetch.lone.is_probing and self.gets_several:
            fetch.lone.give_up()
            return
        from twinstream.core.wire.single_answers import Verdict

        verdict = fetch.judge(now)
        if verdict is Verdict.AGAIN:
            token = self.token()
            fetch.probed(token, now)
            await self.probe(token, fetch.limits)
        elif verdict is Verdict.SEVERAL:
            self.note_several()
        elif verdict is Verdict.SINGLE:
            raise self.single_answers()

    def look(self, fetch: Fetch) -> None:
        """Move arrived frames from the mailbox to a fetch, and detect the end of the fetch.

        Raises the error of the mailbox, if the server refused the subscription.
        """
        transport, box = self._api.transport, self.box
        box.signal.clear()
        if fetch.take_all(box.frames, box.heard_at):
            return
        box.check()
        if transport.epoch != self.epoch or not transport.is_connected:
            fetch.lost()
        fetch.check(monotonic(), box.heard_at)

    async def _wait_until_connected(
        self, limits: PullLimits, patience: float
    ) -> tuple[PullLimits, float]:
        """Wait for the connection; return the fetch's limits and timeout, less the time waited."""
        end = Deadline.after(patience)
        # A fetch that does not wait for messages may still wait for a short reconnect.
        longest = end.at if patience else end.at + GRACE
        await self._api.transport.ready(self._api.deadline().earlier(longest))
        if limits.expires is None or not patience:
            return limits, patience
        remaining = max(end.remaining(), _LEAST)
        return evolve(limits, expires=remaining), remaining

    async def give_back(self, frames: list[Frame]) -> None:
        """Send a NAK to the server for each message among `frames`. No caller took them."""
        word = nak(None)
        try:
            for frame in frames:
                if frame[1] and not is_status(frame):
                    await self._api.transport.send(frame[1], b"", b"", word)
        except (ConnectionClosed, RequestTimeout):
            # Not connected: the server redelivers the messages after the consumer's ack_wait.
            return


class PullChannels:
    """The pull channels of one consumer. They reuse the idle inboxes of the connection."""

    def __init__(self, api: Api, stream: str, consumer: str, owner: str = "") -> None:
        self._api: Final = api
        self._owner: Final = owner
        self._idle: Final = api.transport.replies.idle_inboxes
        self._subject: Final = api.subjects.next_message(stream, consumer).encode()
        self.pins: Final = Pins()

    def take_idle(self) -> PullChannel | None:
        """Return a channel that uses an idle inbox, or None if there is no idle inbox."""
        inbox = self._idle.take()
        if inbox is None:
            return None
        prefix, box = inbox
        return PullChannel(self._api, self._subject, prefix, box, self.pins, self._owner)

    async def take(self) -> PullChannel:
        """Return a channel for exclusive use. Subscribe to a new inbox if there is no idle one."""
        if HOOKS:
            reached("channels: before take", self)
        idle = self.take_idle()
        if idle is not None:
            return idle
        transport = self._api.transport
        while (refused := self._idle.take_refused()) is not None:
            await transport.close_mailbox(refused)
        prefix = transport.tokens.inbox().encode() + b"."
        box = await transport.open_mailbox(prefix + b"*")
        return PullChannel(self._api, self._subject, prefix, box, self.pins, self._owner)

    def put(self, channel: PullChannel) -> None:
        """Make the inbox of a channel available for reuse. All its requests must have ended."""
        channel.box.owner = ""
        self._idle.put(channel.prefix, channel.box)

    async def fetch(self, limits: PullLimits, patience: float) -> Fetch:
        """Run one fetch to its end."""
        channel = self.take_idle() or await self.take()
        transport, box = self._api.transport, channel.box
        fetch, is_clean = None, False
        try:
            fetch = await channel.begin(limits, patience)
            if transport.epoch != channel.epoch:
                fetch.lost()
            while not fetch.is_over:
                await transport.wait(box.signal, Deadline(fetch.wake_at()))
                channel.look(fetch)
                if not fetch.is_over:
                    await channel.doubt(fetch)
            is_clean = fetch.is_clean
        except BaseException:
            # The fetch was interrupted. Put its messages back into the mailbox, so that `end`
            # returns them to the server.
            if fetch is not None:
                box.frames.extendleft(reversed(fetch.frames))
            raise
        finally:
            if is_clean:
                self._idle.put(channel.prefix, box)
            else:
                await self.end(channel)
        return fetch

    async def end(self, channel: PullChannel) -> None:
        """Close a channel on which more messages may arrive.

        This ends its open requests and returns the messages in its mailbox to the server.
        """
        await shielded(lambda: self._end(channel))

    async def _end(self, channel: PullChannel) -> None:
        transport = self._api.transport
        try:
            await channel.close()
        finally:
            # Return the messages in the mailbox even if the call was interrupted, because no caller
            # can take them any more.
            if transport.is_connected:
                await channel.give_back(channel.box.take_all())

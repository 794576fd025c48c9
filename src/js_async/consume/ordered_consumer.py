"""The server-side consumers of an ordered read, which uses one at a time."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import TYPE_CHECKING, Any, Final

from attrs import evolve

from js_async.api import consumer_admin
from js_async.api.api import Api
from js_async.api.create_update import create_consumer
from js_async.consume.buffer import MessageBuffer
from js_async.consume.consumer_recovery import ConsumerRecovery
from js_async.consume.pull_subscription import PullChannels
from js_async.runtime.concurrency import shielded
from twinstream.core.consume.buffer_limits import DEFAULT_MESSAGES
from twinstream.core.consume.ordered import OrderedRead
from twinstream.core.consume.pull_request import PullLimits
from twinstream.core.consume.reports import ConsumerRecreated, PullReport
from twinstream.core.deadline import Deadline
from twinstream.core.log.reporter import Reporter
from twinstream.errors import ConnectionClosed, ConnectionLost, ConsumerExists
from twinstream.errors.transient import FAILED_REQUEST

if TYPE_CHECKING:
    from twinstream.core.payloads.payloads import Payloads

__all__ = ["OrderedConsumer"]


# How long `end` waits for the connection, which it needs to delete consumers (seconds).
_PATIENCE: Final = 1.0


class OrderedConsumer:
    """The current consumer of one ordered read. It is replaced when lost, and finally deleted."""

    def __init__(
        self,
        api: Api,
        stream: str,
        read: OrderedRead,
        limits: PullLimits,
        on_report: Callable[[PullReport], None] | None,
    ) -> None:
        self._api: Final = api
        self._stream: Final = stream
        self._read: Final = read
        self._limits: Final = limits
        self._on_report: Final = on_report
        self.report: Final[Reporter[PullReport]] = Reporter(on_report, stream=stream)
        # The name of a consumer that may exist on the server, because the call that creates it got
        # no response or was interrupted. Otherwise None.
        self._unsure: str | None = None
        # The names of consumers that may exist on the server and must be deleted.
        self._unwanted: list[str] = []
        self.messages: MessageBuffer | None = None
        """The messages of the current consumer, or None if there is none."""
        self.payloads: Payloads[Any] | None = None
        """What decodes the messages of a typed stream, otherwise None."""

    def __del__(self) -> None:
        # If `__init__` was interrupted, attributes are missing, and there is no consumer.
        names = list(getattr(self, "_unwanted", ()))
        if names or getattr(self, "messages", None) or getattr(self, "_unsure", None):
            for name in {*names, self._read.name}:
                self._api.transport.part(self._deletion(name))

    async def create(self, deadline: Deadline, stop_after: int | None) -> MessageBuffer:
        """Delete earlier consumers, create the next consumer and return its buffer.

        If the previous attempt failed, its name is used again, so that at most one consumer exists.
        Raises `ConsumerExists` if the previous attempt created a consumer with another
        configuration; the next call uses a new name. `stop_after` is the number of messages that
        the read still wants, or None for no limit.
        """
        api, read = self._api, self._read
        epoch, unwanted = api.transport.epoch, list(self._unwanted)
        for name in unwanted:
            await self._send_deletion(name)
        stream = await api.stream_info(self._stream, deadline)
        if read.found_stream(stream):
            self.report(ConsumerRecreated(self._stream))
        config = read.next_config()
        self._unsure = read.name
        try:
            info = await create_consumer(api, self._stream, config, "create", deadline)
        except ConsumerExists:
            # An interrupted attempt has created a consumer of this name with another configuration,
            # which is outdated now.
            self._unwanted.append(read.name)
            self._unsure = None
            read.rename()
            raise
        if api.transport.epoch == epoch:
            # The server has processed the deletions: they were sent before this request, over the
            # same connection.
            self._unwanted = [name for name in self._unwanted if name not in unwanted]
        read.made(info)
        owner = f"{self._stream}: an ordered read"
        channels = PullChannels(api, self._stream, info.name, owner)
        recovery = ConsumerRecovery(api, channels, self._stream, info.name, info, "raise")
        limits = self._limits_now(stop_after)
        messages = MessageBuffer(
            recovery, limits, None, self._on_report, give_back=False, fragile=True
        )
        messages.ready.payloads = self.payloads
        # From here on, another caller may leave the consumer and close its buffer.
        self.messages = messages
        self._unsure = None
        # Subscribe now, so that a read that is dropped before its first message causes a warning.
        await messages.open()
        return messages

    def _limits_now(self, stop_after: int | None) -> PullLimits:
        """Return the limits of the current consumer's pull requests."""
        limits = self._limits
        if not self._read.is_bounded:
            return evolve(limits, stop_after=stop_after)
        # The read skips some of the delivered messages. Limits by bytes and `stop_after` would
        # count the skipped messages, too.
        if limits.max_bytes is not None:
            limits = evolve(
                limits,
                max_messages=DEFAULT_MESSAGES,
                threshold=DEFAULT_MESSAGES // 2,
                max_bytes=None,
                threshold_bytes=0,
            )
        return evolve(limits, stop_after=None)

    async def leave(self) -> None:
        """Stop using the current consumer. The next `create` or `end` deletes it."""
        messages, name = self.messages, self._read.name
        if messages is None:
            return
        await messages.close()
        if messages is self.messages:
            # If they differ, another caller has left the consumer during `close`.
            self._unwanted.append(name)
            self.messages = None

    async def end(self) -> None:
        """Leave the current consumer and delete all consumers that may exist on the server.

        While disconnected, wait for the connection for at most one second. The server deletes the
        remaining consumers after `inactive_threshold`. If the caller is cancelled, this continues
        in the background.
        """
        if self.messages is not None or self._unsure is not None or self._unwanted:
            await shielded(self._end)

    async def _end(self) -> None:
        """Leave the consumer, and delete it and all earlier consumers that may still exist."""
        await self.leave()
        unsure, self._unsure = self._unsure, None
        if unsure is not None:
            self._unwanted.append(unsure)
        patience = Deadline.after(_PATIENCE)
        for name in list(self._unwanted):
            delete = partial(self._delete, name, patience)
            if name == unsure:
                await consumer_admin.delete_unconfirmed(delete)
            else:
                await delete()
            self._unwanted = [each for each in self._unwanted if each != name]

    async def _delete(self, name: str, patience: Deadline) -> bool:
        """Delete a consumer; return whether the server has confirmed it."""
        transport = self._api.transport
        while True:
            try:
                if not transport.is_connected:
                    await transport.ready(patience)
                await consumer_admin.delete(self._api, self._stream, name)
                return True
            except ConnectionLost:
                # The client may reconnect in time.
                if not patience.expired():
                    continue
            except (*FAILED_REQUEST, ConnectionClosed):
                # The consumer does not exist, or the server deletes it after `inactive_threshold`.
                pass
            return False

    async def _send_deletion(self, name: str) -> None:
        """Send a delete request. Do not wait for the response.

        The leader of the consumer may be down, so that no response comes.
        """
        await self._api.transport.send(self._deletion(name), b"", b"", b"")

    def _deletion(self, name: str) -> bytes:
        """Return the subject of the request that deletes a consumer."""
        return self._api.subjects.consumer("DELETE", self._stream, name).encode()

# Generated from src/js_async/consume/ordered_consumer.py by codegen/twin.py. Edit that file instead.
"""The consumer of an ordered read on the server: created again when lost, never left behind."""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

from attrs import evolve

from twinstream.core.deadline import Deadline
from twinstream.errors import (
    ConnectionClosed,
    ConnectionLost,
    ConsumerExists,
    JetStreamError,
    NoResponders,
    RequestTimeout,
)
from twinstream.core.consume.ordered import OrderedRead
from twinstream.core.consume.pull_request import DEFAULT_MESSAGES, PullLimits
from twinstream.core.log.reporter import Reporter
from twinstream.core.consume.reports import PullReport, Recreated
from js_sync.api import consumer_admin as _control
from js_sync.api.api import Api
from js_sync.api.create_update import create_consumer
from js_sync.consume.consumer_recovery import Missing
from js_sync.consume.pull_subscription import PullChannels
from js_sync.consume.messages import Messages

__all__ = ["TRANSIENT", "OrderedConsumer"]

TRANSIENT: Final = (NoResponders, RequestTimeout, ConnectionLost)
"""What a later attempt may not meet."""

# How long a deletion waits for a connection at the end of a read (seconds).
_PATIENCE: Final = 1.0


class OrderedConsumer:
    """Creates the consumers of one ordered read, one at a time, and deletes them."""

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
        # One that was asked for without an answer: it may be on the server.
        self._unsure: str | None = None
        # Those that may be on the server and are not wanted.
        self._unwanted: list[str] = []
        self.messages: Messages | None = None
        """What the present consumer delivers; None when there is no consumer."""

    def create(self, deadline: Deadline, stop_after: int | None) -> Messages:
        """Create the next consumer. One whose creation was cut short is used if it is there."""
        api, read = self._api, self._read
        epoch, unwanted = api.transport.epoch, list(self._unwanted)
        for name in unwanted:
            self._send_deletion(name)
        stream = api.stream_info(self._stream, deadline)
        if read.found_stream(stream):
            self.report(Recreated(self._stream))
        config = read.next_config()
        self._unsure = read.name
        try:
            info = create_consumer(api, self._stream, config, "create", deadline)
        except ConsumerExists:
            # Made by an attempt that was cut short, as was right then.
            self._unwanted.append(read.name)
            self._unsure = None
            read.rename()
            raise
        if api.transport.epoch == epoch:
            # The answer came over the connection that took the deletions before.
            self._unwanted = [name for name in self._unwanted if name not in unwanted]
        read.made(info)
        channels = PullChannels(api, self._stream, info.name)
        missing = Missing(api, channels, self._stream, info.name, info, "raise")
        limits = self._limits_now(stop_after)
        self.messages = Messages(
            missing, limits, None, self._on_report, give_back=False, fragile=True
        )
        self._unsure = None
        return self.messages

    def _limits_now(self, stop_after: int | None) -> PullLimits:
        """Return the limits of the pull requests of the present consumer."""
        limits = self._limits
        if not self._read.is_bounded:
            return evolve(limits, stop_after=stop_after)
        # Some of what it delivers is skipped, and a limit of bytes would lose some of it.
        if limits.max_bytes is not None:
            limits = evolve(
                limits,
                max_messages=DEFAULT_MESSAGES,
                threshold=DEFAULT_MESSAGES // 2,
                max_bytes=None,
                threshold_bytes=0,
            )
        return evolve(limits, stop_after=None)

    def leave(self) -> None:
        """Take no more from the present consumer; it is deleted with the next call."""
        messages, name = self.messages, self._read.name
        if messages is None:
            return
        messages.close()
        if messages is self.messages:
            # Otherwise another caller left it meanwhile.
            self._unwanted.append(name)
            self.messages = None

    def end(self) -> None:
        """Leave the present consumer and delete all that may be on the server.

        While there is no connection it waits for one, for a second at most. What cannot be deleted
        then vanishes by itself after `inactive_threshold`.
        """
        self.leave()
        if self._unsure is not None:
            self._unwanted.append(self._unsure)
            self._unsure = None
        patience = Deadline.after(_PATIENCE)
        for name in list(self._unwanted):
            self._delete(name, patience)
            self._unwanted = [each for each in self._unwanted if each != name]

    def _delete(self, name: str, patience: Deadline) -> None:
        transport = self._api.transport
        while True:
            try:
                if not transport.is_connected:
                    transport.ready(patience)
                _control.delete(self._api, self._stream, name)
            except ConnectionLost:
                # Another connection may take it in time.
                if not patience.expired():
                    continue
            except (*TRANSIENT, ConnectionClosed, JetStreamError):
                # It is gone, or vanishes by itself.
                pass
            return

    def _send_deletion(self, name: str) -> None:
        """Ask for the deletion of a consumer without waiting: its leader may not answer."""
        subject = self._api.subjects.consumer("DELETE", self._stream, name)
        self._api.transport.send(subject.encode(), b"", b"", b"")

"""The part of a connection's interface that requests and inboxes use: send, mailboxes, wait."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Protocol

from js_async.client.closable import Drainables
from js_async.runtime.concurrency import Signal
from twinstream.core.client.handshake import ServerInfo
from twinstream.core.client.mailbox import Mailbox
from twinstream.core.deadline import Deadline
from twinstream.core.wire.protocol import ByteTaker, HeldBack, Sink
from twinstream.core.wire.tokens import Tokens
from twinstream.errors import ConnectionClosed

if TYPE_CHECKING:
    from twinstream.core.observe.observers import Observers

__all__ = ["Box", "Channel"]

Box = Mailbox[Signal]


class Channel(Protocol):
    """The interface of a connection that reconnects by itself."""

    @property
    def epoch(self) -> int:
        """The number of connects so far.

        Requests that were sent before the latest connect get no response.
        """
        ...

    @property
    def is_connected(self) -> bool:
        """Whether the connection is established now."""
        ...

    @property
    def is_closed(self) -> bool:
        """Whether the connection is closed and will not reconnect."""
        ...

    @property
    def server_info(self) -> ServerInfo:
        """The server's latest INFO."""
        ...

    @property
    def request_timeout(self) -> float:
        """The default timeout of a request in seconds."""
        ...

    @property
    def observers(self) -> Observers | None:
        """The observers of the connection; None, as usual, if nothing observes it."""
        ...

    @property
    def call_observers(self) -> Observers | None:
        """The observers of requests and published messages: `observers`, or `on_call` alone."""
        ...

    @property
    def drainables(self) -> Drainables:
        """What the end of the connection by `drain` ends first."""
        ...

    @property
    def tokens(self) -> Tokens:
        """The source of inboxes, request tokens and names."""
        ...

    def closed_error(self) -> ConnectionClosed:
        """Return the error to raise after the connection was closed, with the reason if known."""
        ...

    async def ready(self, deadline: Deadline) -> None:
        """Wait until the client is connected.

        Raises `ConnectionClosed` when it is closed, and `RequestTimeout` at the deadline.
        """
        ...

    def write(
        self, subject: bytes, reply: bytes, headers: bytes, payload: bytes, now: bool = False
    ) -> bool:
        """Publish a message whose parts are already checked and encoded, without waiting.

        Return False if the message was not taken: the client is not connected, the server does not
        accept the message, or the send buffer is full. The caller uses `send` then. With `now`, the
        message is sent at once, even if the buffer is full; otherwise it may be sent together with
        later messages. Callers set `now` when they wait for a response.
        """
        ...

    def write_command(self, command: bytes) -> bool:
        """Send a short, complete command as `write` does.

        An acknowledgement takes a sixth less CPU time with it (`messages`, each message acked).
        """
        ...

    async def send(
        self, subject: bytes, reply: bytes, headers: bytes, payload: bytes, now: bool = False
    ) -> None:
        """Publish a message as `write` does, and wait where `write` returns False.

        Waits until the client is connected; raises `RequestTimeout` after `request_timeout`
        seconds. If the send buffer is full then, it takes the message; without `now`, the call
        waits until the buffer is no longer full.
        """
        ...

    async def open_mailbox(
        self, subject: bytes, queue: bytes = b"", sink: Callable[[Box], Sink] | None = None
    ) -> Box:
        """Subscribe, and return the mailbox that collects the arriving frames.

        The subscription ends when the mailbox is closed. If the caller drops it instead, the
        garbage collector ends the subscription, with a warning if `Mailbox.owner` is set.

        If `sink` is given, it is called with the mailbox and returns a function. Arriving frames
        are passed to this function instead of the mailbox. They do not change the mailbox's
        `signal` and `heard_at`. The function must not refer to the mailbox or its owner, or the
        garbage collector cannot end the subscription.
        """
        ...

    async def close_mailbox(self, *boxes: Box, settle: bool = False) -> None:
        """Unsubscribe the mailboxes. Frames that they already contain stay there.

        With `settle`, wait until the server has processed the UNSUB (at most 1 s). The mailboxes
        then contain everything that the server sent.
        """
        ...

    def part(self, subject: bytes) -> None:
        """Publish an empty message soon, without waiting and without confirmation.

        For an object that is dropped before it has deleted what it created on the server. The
        garbage collector may call this in any thread and at any point of the program. Does nothing
        in a forked child, or while the client is disconnected.
        """
        ...

    def hold_back(self, bulk: HeldBack) -> None:
        """Let `bulk` take the bytes of its subscription before they are parsed.

        Over a connection of nats-py, this does nothing, and the messages arrive as frames. The same
        is true while the response of another `HeldBack` object is incomplete.
        """
        ...

    def cut_acks(self, cutter: ByteTaker) -> None:
        """Let `cutter` take publish acknowledgements before they are parsed.

        This ends when the mailbox of the cutter is closed. Over a connection of nats-py, `cutter`
        is not called: all acknowledgements arrive as frames.
        """
        ...

    async def wait(self, signal: Signal, deadline: Deadline) -> bool:
        """Flush buffered data, then wait for the signal or the deadline.

        Return whether the signal is set.

        The connection also sets the signals of its mailboxes when it is lost, restored or closed.
        """
        ...

"""The interface that requests and inboxes need of a connection: sending, mailboxes and waiting."""

from __future__ import annotations

from collections.abc import Callable
from typing import Protocol

from js_async.runtime.concurrency import Signal
from twinstream.core.connect.handshake import ServerInfo
from twinstream.core.connect.mailbox import Mailbox
from twinstream.core.deadline import Deadline
from twinstream.core.wire.protocol import ByteTaker, HeldBack, Sink
from twinstream.core.wire.tokens import Tokens
from twinstream.errors import ConnectionClosed

__all__ = ["Box", "Channel"]

Box = Mailbox[Signal]


class Channel(Protocol):
    """A connection that reconnects by itself; `epoch` counts its connects."""

    @property
    def epoch(self) -> int:
        """Number of connects so far. Requests sent in an earlier epoch get no response."""
        ...

    @property
    def is_connected(self) -> bool:
        """Whether the connection is established now."""
        ...

    @property
    def is_closed(self) -> bool:
        """Whether the connection is closed for good."""
        ...

    @property
    def server_info(self) -> ServerInfo:
        """What the server reported about itself at the last connect."""
        ...

    @property
    def request_timeout(self) -> float:
        """Default timeout of a request in seconds."""
        ...

    @property
    def tokens(self) -> Tokens:
        """The source of inboxes, request tokens and names."""
        ...

    def closed_error(self) -> ConnectionClosed:
        """Return the error for use after the end; it includes the reason of the end."""
        ...

    async def ready(self, deadline: Deadline) -> None:
        """Wait until connected; raises `ConnectionClosed` or `RequestTimeout`."""
        ...

    def try_send(
        self, subject: bytes, reply: bytes, headers: bytes, payload: bytes, now: bool = False
    ) -> bool:
        """Publish if that needs no waiting; if it returns False, use `send`.

        With `now` the message is sent at once, as the caller waits for a response.
        """
        ...

    def try_write(self, command: bytes) -> bool:
        """Write a short, complete command if that needs no waiting; return whether it was."""
        ...

    async def send(
        self, subject: bytes, reply: bytes, headers: bytes, payload: bytes, now: bool = False
    ) -> None:
        """Publish; every part is already checked and encoded.

        Waits while the send buffer is full, except with `now`: the caller waits for a response.
        """
        ...

    async def open_mailbox(
        self, subject: bytes, queue: bytes = b"", sink: Callable[[Box], Sink] | None = None
    ) -> Box:
        """Subscribe; arriving frames go into the mailbox, or into the `sink`.

        With a `sink` the mailbox gets no notice of arrivals: neither `signal` nor `heard_at`.
        """
        ...

    async def close_mailbox(self, *boxes: Box, settle: bool = False) -> None:
        """Unsubscribe; frames that are in the mailboxes stay there.

        With `settle`, everything that the server sent before it processed the UNSUB is in them.
        """
        ...

    def hold_back(self, bulk: HeldBack) -> None:
        """Pass arriving data to the bulk response before it is parsed, where that is possible.

        That is not possible while an earlier bulk response is in progress, nor over a connection of
        nats-py. The messages arrive as frames then.
        """
        ...

    def cut_acks(self, cutter: ByteTaker) -> None:
        """Let `cutter` take acknowledgements before they are parsed, until its mailbox closes.

        Over a connection of nats-py they all arrive as frames.
        """
        ...

    async def wait(self, signal: Signal, deadline: Deadline) -> bool:
        """Flush, then wait for the signal or the deadline; return whether the signal is set.

        The signal of a mailbox is also set when the connection is lost, restored or closed.
        """
        ...

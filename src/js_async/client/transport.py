"""What the JetStream layer needs of a connection.

Two classes offer it: our own `Connection`, and the adapter over a connection of nats-py.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Protocol

from js_async.runtime.concurrency import Signal
from twinstream.core.wire.bulk_acks import AckCutter
from twinstream.core.read.bulk_page import BulkAnswer
from twinstream.core.deadline import Deadline
from twinstream.errors import ConnectionClosed
from twinstream.core.connect.handshake import ServerInfo
from twinstream.core.connect.mailbox import Mailbox
from twinstream.core.wire.protocol import Frame, Sink
from twinstream.core.wire.tokens import Tokens

if TYPE_CHECKING:
    from js_async.client.instrumentation import OpenCall
    from js_async.client.requests import Replies

__all__ = ["Box", "Transport"]

Box = Mailbox[Signal]


class Transport(Protocol):
    """A link to a server that mends itself; `epoch` counts how often it was made."""

    @property
    def epoch(self) -> int:
        """How many links there were; what was asked under an earlier one is void."""
        ...

    @property
    def is_connected(self) -> bool:
        """Tell whether the link is up now."""
        ...

    @property
    def is_closed(self) -> bool:
        """Tell whether the link is gone for good."""
        ...

    @property
    def server_info(self) -> ServerInfo:
        """What the server said of itself when the link was made."""
        ...

    @property
    def request_timeout(self) -> float:
        """Seconds that a request waits unless told otherwise."""
        ...

    @property
    def tokens(self) -> Tokens:
        """The source of inboxes, request tokens and names."""
        ...

    @property
    def replies(self) -> Replies:
        """The requests of the connection."""
        ...

    def closed_error(self) -> ConnectionClosed:
        """Return the error for a use after the end; it says why it ended."""
        ...

    async def ready(self, deadline: Deadline) -> None:
        """Return when the link is up; raises `ConnectionClosed` or `RequestTimeout`."""
        ...

    def try_send(
        self, subject: bytes, reply: bytes, headers: bytes, payload: bytes, now: bool = False
    ) -> bool:
        """Publish if that needs no waiting; tell whether it was done, else use `send`.

        With `now` it goes out at once: the caller waits for the answer.
        """
        ...

    def try_write(self, command: bytes) -> bool:
        """Write a short, ready-made command if that needs no waiting; tell whether it was done."""
        ...

    async def send(
        self, subject: bytes, reply: bytes, headers: bytes, payload: bytes, now: bool = False
    ) -> None:
        """Publish; every part is checked and encoded already.

        Waits for a peer that is behind, but not with `now`: the caller waits for the answer.
        """
        ...

    async def ask(
        self,
        subject: str,
        headers: bytes,
        payload: bytes,
        deadline: Deadline,
        *,
        repeatable: bool = False,
        fits: Callable[[Frame], bool] | None = None,
        call: OpenCall | None = None,
    ) -> Frame:
        """Publish with a reply subject and return the one answer.

        One that is `repeatable` is published again while no answer comes. What does not please
        `fits` is of somebody else, and is passed over. Repeats are counted in `call`. Raises
        `NoResponders`, `RequestTimeout`, `ConnectionLost` or `ConnectionClosed`.
        """
        ...

    async def open_mailbox(
        self, subject: bytes, queue: bytes = b"", sink: Callable[[Box], Sink] | None = None
    ) -> Box:
        """Subscribe; frames go into the mailbox, or where `sink` says for it, as they arrive.

        With a `sink` nothing else tells the mailbox that they came: neither flag nor `heard_at`.
        """
        ...

    async def close_mailbox(self, *boxes: Box, settle: bool = False) -> None:
        """Unsubscribe; frames that are in the mailboxes stay there.

        With `settle`, what the server sent before it read the UNSUB is in them too.
        """
        ...

    def hold_back(self, bulk: BulkAnswer) -> None:
        """Show the bulk answer what arrives before it is parsed, where that is possible.

        It is not while an earlier one is under way, nor over a connection of nats-py: the
        messages then come as frames.
        """
        ...

    def cut_acks(self, cutter: AckCutter) -> None:
        """Let it take acknowledgements before they are parsed, until its mailbox is closed.

        Over a connection of nats-py they all come as frames.
        """
        ...

    async def wait(self, signal: Signal, deadline: Deadline) -> bool:
        """Send what was written, then sleep until the flag is up or the deadline passes.

        The flag of a mailbox also goes up when the link breaks, comes back or closes.
        """
        ...

"""The inbox of one publisher, to which the server sends the acknowledgements of its messages."""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

from js_async.client.transport import Box, Transport
from twinstream.core.wire.protocol import Sink
from twinstream.errors import TwinstreamError

__all__ = ["AckInbox"]


class AckInbox:
    """The subscription to `name` and `tail`.

    The code that reads the socket calls `deliver` with each reply. If messages get no reply, it
    calls `note` with their subject in lower case, or None for all messages, and with the reason.
    """

    def __init__(
        self,
        transport: Transport,
        tail: bytes,
        deliver: Sink,
        note: Callable[[bytes | None, TwinstreamError], None],
    ) -> None:
        self.name: Final = transport.tokens.inbox().encode()
        self._note: Final = note
        self._transport: Final = transport
        self._tail: Final = tail
        self._deliver: Final = deliver
        self._box: Box | None = None

    @property
    def is_open(self) -> bool:
        """Whether the client is subscribed."""
        return self._box is not None

    @property
    def error(self) -> TwinstreamError | None:
        """The error with which the server refused the subscription, None if it did not.

        A refusal does not reach messages that are added while `note` runs, or before `open`
        returns. Callers therefore look at this before they wait.
        """
        return None if self._box is None else self._box.error

    async def open(self) -> Box:
        """Subscribe and return the mailbox. The client must be connected."""
        box = await self._transport.open_mailbox(
            self.name + self._tail, sink=lambda _: self._deliver
        )
        self._box = box
        self._transport.replies.watch(self)
        return box

    async def close(self) -> None:
        """Unsubscribe. Does nothing if not open."""
        box = self._box
        if box is not None:
            self._transport.replies.unwatch(self)
            await self._transport.close_mailbox(box)
            # `_box` is cleared last, so that `close` can be called again after an interrupted call.
            self._box = None

    def note(self, subject: bytes | None, error: TwinstreamError) -> None:
        """Report messages that get no reply."""
        self._note(subject, error)

    def deny(self, box: Box, error: TwinstreamError) -> None:
        """Report a subscription that the server refused, if it is that of this inbox."""
        if box is self._box:
            self._note(None, error)

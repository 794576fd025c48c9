"""The inbox of a reader whose requests each get many messages as a response."""

from __future__ import annotations

from typing import Final

from js_async.api.api import Api
from js_async.client.transport import Box
from twinstream.core.deadline import NEVER, Deadline
from twinstream.errors import ConnectionLost, RequestTimeout

__all__ = ["Inbox"]

# The response is lost after this time without a frame (seconds), because the server sends a
# response without pauses. The value is the default timeout of a JetStream request.
_SILENCE: Final = 5.0


class Inbox:
    """A subscription for the responses to all requests of a reader.

    Each request has a reply subject with its own token.
    """

    def __init__(self, api: Api) -> None:
        self._api: Final = api
        self._prefix = ""
        self._box: Box | None = None
        self._patience = min(_SILENCE, api.timeout)

    async def open(self, subject: bytes) -> tuple[Box, str]:
        """Return the mailbox, and a new reply subject for a request to `subject`."""
        if self._box is None:
            self._prefix = self._api.transport.tokens.inbox()
            self._box = await self._api.transport.open_mailbox(f"{self._prefix}.*".encode())
        self._box.asks = subject
        return self._box, f"{self._prefix}.{self._api.transport.tokens.next()}"

    async def wait(self, box: Box, epoch: int, deadline: Deadline = NEVER) -> None:
        """Wait for frames of a response, at most until `deadline`.

        `epoch` is the transport's `epoch` when the request was sent.

        Raises:
            ConnectionLost: The client was disconnected since the request.
            RequestTimeout: No frame arrived in time.
            PermissionDenied: The user may not publish the request, or not subscribe.
        """
        transport, patience = self._api.transport, self._patience
        is_set = await transport.wait(box.signal, Deadline.after(patience).earlier(deadline.at))
        if box.error is not None:
            raise box.error
        if transport.epoch != epoch or not transport.is_connected:
            raise ConnectionLost("the connection broke in the middle of a page")
        if not is_set:
            # A server that searches for rare messages may be slow. Wait longer next time: with the
            # same timeout, the reader would repeat the request forever.
            self._patience = min(_SILENCE, 2 * patience)
            raise RequestTimeout(f"a page fell silent for {patience:g} s")

    async def close(self) -> None:
        """Unsubscribe."""
        if self._box is not None:
            await self._api.transport.close_mailbox(self._box)
            self._box = None

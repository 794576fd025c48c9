"""One subscription for the responses to many requests with many messages each."""

from __future__ import annotations

from typing import Final

from js_async.api.api import Api
from js_async.client.transport import Box
from twinstream.core.deadline import Deadline
from twinstream.errors import ConnectionLost, RequestTimeout

__all__ = ["Inbox"]

# Seconds of silence within a response after which it is considered lost. The server sends it
# without a pause; this equals the default timeout of a JetStream request.
_SILENCE: Final = 5.0


class Inbox:
    """One subscription for all requests of a reader, with a token for each request."""

    def __init__(self, api: Api) -> None:
        self._api: Final = api
        self._prefix = ""
        self._box: Box | None = None
        self._patience = min(_SILENCE, api.timeout)

    async def open(self, subject: bytes) -> tuple[Box, str]:
        """Return the mailbox, and the reply subject for the next request to `subject`."""
        if self._box is None:
            self._prefix = self._api.transport.tokens.inbox()
            self._box = await self._api.transport.open_mailbox(f"{self._prefix}.*".encode())
        self._box.asks = subject
        return self._box, f"{self._prefix}.{self._api.transport.tokens.next()}"

    async def wait(self, box: Box, epoch: int) -> None:
        """Wait for frames; raise if the connection breaks or the server falls silent.

        Raises `PermissionDenied` if the user may not publish the request or subscribe.
        """
        transport, patience = self._api.transport, self._patience
        came = await transport.wait(box.signal, Deadline.after(patience))
        if box.error is not None:
            raise box.error
        if transport.epoch != epoch or not transport.is_connected:
            raise ConnectionLost("the connection broke in the middle of a page")
        if not came:
            # A server that searches for rare messages may be slow. With the same timeout each time,
            # a read would repeat this page forever.
            self._patience = min(_SILENCE, 2 * patience)
            raise RequestTimeout(f"a page fell silent for {patience:g} s")

    async def close(self) -> None:
        """Unsubscribe."""
        if self._box is not None:
            await self._api.transport.close_mailbox(self._box)
            self._box = None

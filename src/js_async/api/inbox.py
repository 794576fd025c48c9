"""The inbox of a reader whose requests each get many messages as a response."""

from __future__ import annotations

from typing import Final

from js_async.api.api import Api
from js_async.client.transport import Box
from twinstream.core.deadline import NEVER, Deadline
from twinstream.errors import ConnectionLost, RequestTimeout

__all__ = ["Inbox"]

# Maximum time to wait for the next frame of a response (seconds). After this time, the response
# counts as lost. The value is the default timeout of a JetStream request.
_SILENCE: Final = 5.0
# Seconds without another frame after which the first probe is sent.
_QUIET: Final = 0.5


class Inbox:
    """A subscription for the responses to all requests of a reader.

    Each request has a reply subject with its own token. `owner` names the reader in the warning for
    a program that drops the reader without closing it.
    """

    def __init__(self, api: Api, owner: str) -> None:
        self._api: Final = api
        self._owner: Final = owner
        self._prefix = ""
        self._box: Box | None = None
        self._patience = min(_SILENCE, api.timeout)

    async def open(self, subject: bytes) -> tuple[Box, str]:
        """Return the mailbox, and a new reply subject for a request to `subject`.

        Subscribe to the inbox if that is not done yet.
        """
        if self._box is None:
            self._prefix = self._api.transport.tokens.inbox()
            self._box = await self._api.transport.open_mailbox(f"{self._prefix}.*".encode())
            self._box.owner = self._owner
        self._box.asks = subject
        return self._box, f"{self._prefix}.{self._api.transport.tokens.next()}"

    async def wait(
        self, box: Box, epoch: int, deadline: Deadline = NEVER, *, lone: bool = False
    ) -> None:
        """Wait for the next frames of a response, at most until `deadline`.

        `lone` is true if exactly one frame of the response has arrived. If no further frame arrives
        within a moment, probes may show that none can arrive (`SingleAnswers`).

        The wait also ends after the API's default timeout. If no frame arrives in this time, the
        next wait may take twice as long, up to `_SILENCE`. `epoch` is the value of
        `Transport.epoch` when the request was sent.

        Raises:
            ConnectionLost: The connection was lost after the request was sent.
            RequestTimeout: No frame arrived in time.
            PermissionDenied: The user may not publish the request, or not subscribe to the inbox.
            SingleAnswers: Only the first frame of each response arrives.
        """
        transport, patience = self._api.transport, self._patience
        if lone and not await transport.wait(box.signal, Deadline.after(_QUIET)):
            from js_async.api.single_answers import check_several

            await check_several(self._api, box.asks)
        is_set = await transport.wait(box.signal, Deadline.after(patience).earlier(deadline.at))
        box.check()
        if transport.epoch != epoch or not transport.is_connected:
            raise ConnectionLost("the connection broke in the middle of a page")
        if not is_set:
            # The server is slow if it searches for rare messages. The reader repeats the request,
            # which might fail each time with the same timeout. So double the timeout.
            self._patience = min(_SILENCE, 2 * patience)
            raise RequestTimeout(f"a page fell silent for {patience:g} s")

    async def close(self) -> None:
        """Unsubscribe from the inbox, if it was opened."""
        if self._box is not None:
            await self._api.transport.close_mailbox(self._box)
            self._box = None

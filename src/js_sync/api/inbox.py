# Generated from src/js_async/api/inbox.py by codegen/twin.py. Edit that file instead.
"""One subscription for the answers of many requests that are answered in many messages."""

from __future__ import annotations

from typing import Final

from twinstream.core.deadline import Deadline
from twinstream.errors import ConnectionLost, RequestTimeout
from js_sync.api.api import Api
from js_sync.client.transport import Box

__all__ = ["Inbox"]

# Silence in the middle of an answer that means it is lost, in seconds. The server sends one
# without a break; the default of a JetStream request is the same.
_SILENCE: Final = 5.0


class Inbox:
    """One subscription for all requests of a reader, a token for each request."""

    def __init__(self, api: Api) -> None:
        self._api: Final = api
        self._prefix = ""
        self._box: Box | None = None
        self._patience = min(_SILENCE, api.timeout)

    def open(self, subject: bytes) -> tuple[Box, str]:
        """Return the mailbox, and the reply subject of the next request, to that subject."""
        if self._box is None:
            self._prefix = self._api.transport.tokens.inbox()
            self._box = self._api.transport.open_mailbox(f"{self._prefix}.*".encode())
        self._box.asks = subject
        return self._box, f"{self._prefix}.{self._api.transport.tokens.next()}"

    def wait(self, box: Box, epoch: int) -> None:
        """Return when frames came; raises when the link broke or the server fell silent.

        Raises `PermissionDenied` when the user may not ask, or not listen.
        """
        transport, patience = self._api.transport, self._patience
        came = transport.wait(box.signal, Deadline.after(patience))
        if box.error is not None:
            raise box.error
        if transport.epoch != epoch or not transport.is_connected:
            raise ConnectionLost("the link broke in the middle of a page")
        if not came:
            # A server that looks for what is rare may be slower than answers to requests may be:
            # with the same patience each time, a read would begin this page again and again.
            self._patience = min(_SILENCE, 2 * patience)
            raise RequestTimeout(f"a page fell silent for {patience:g} s")

    def close(self) -> None:
        """Unsubscribe."""
        if self._box is not None:
            self._api.transport.close_mailbox(self._box)
            self._box = None

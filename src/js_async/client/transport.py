"""The interface of a connection that the JetStream layer uses.

Two classes implement it: `Session`, and the adapter for a connection of nats-py.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Protocol

from js_async.client.channel import Box, Channel
from js_async.client.requests import PendingRequests
from twinstream.core.deadline import Deadline
from twinstream.core.wire.protocol import Frame

if TYPE_CHECKING:
    from twinstream.core.observe.operation import Operation

__all__ = ["Box", "Transport"]


class Transport(Channel, Protocol):
    """The interface of a connection that reconnects by itself and sends requests."""

    @property
    def replies(self) -> PendingRequests:
        """The open requests of the connection."""
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
        call: Operation | None = None,
    ) -> Frame:
        """Send a request and return its single response.

        A `repeatable` request is sent again while no response arrives; `call` counts the repeats.
        Responses that do not satisfy `fits` come from other responders and are skipped. Raises
        `NoResponders`, `RequestTimeout`, `PermissionDenied`, `ConnectionLost` or
        `ConnectionClosed`.
        """
        ...

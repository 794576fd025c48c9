"""The open pull requests: how many messages and bytes each of them still has to deliver."""

from __future__ import annotations

from typing import Final

from twinstream.core.wire.status import Status

__all__ = ["OpenRequest", "OpenRequests"]

# Maximum number of remembered requests that are complete by the accounting. A late status may still
# correct the accounting of such a request. Usually no status arrives, so without a limit these
# requests would accumulate.
_REMEMBERED: Final = 64


class OpenRequest:
    """A pull request that was sent and that no status has ended."""

    __slots__ = ("bytes_left", "left", "sent_at", "sent_behind")

    def __init__(self, batch: int, max_bytes: int | None, sent_at: float, arrived: int) -> None:
        self.left = batch
        """The number of messages that the request still has to deliver."""
        self.bytes_left = max_bytes
        """The number of bytes that it still has to deliver, or None without a limit."""
        self.sent_at: Final = sent_at
        """The monotonic time when the request was sent."""
        self.sent_behind: Final = arrived
        """The number of messages that had arrived before the request was sent."""

    @property
    def is_full(self) -> bool:
        """Whether the request is complete by the accounting."""
        return self.left == 0 or self.bytes_left == 0


class OpenRequests:
    """The accounting of requests, by the rules in the docstring of the pull engine's module."""

    def __init__(self) -> None:
        self.open: Final[dict[bytes, OpenRequest]] = {}
        """The requests by their tokens, oldest first, that are incomplete by the accounting."""
        # Requests that are complete by the accounting, which a late status may still correct.
        self._presumed_full: Final[dict[bytes, OpenRequest]] = {}

    @property
    def outstanding(self) -> int:
        """Messages that were requested and have not arrived."""
        # A copy, because another thread may read this while the owner changes the requests.
        requests = tuple(self.open.values())
        return requests[0].left if len(requests) == 1 else sum([each.left for each in requests])

    @property
    def outstanding_bytes(self) -> int:
        """Bytes that were requested and have not arrived."""
        return sum(request.bytes_left or 0 for request in self.open.values())

    def arrived(self, count: int, size: int) -> None:
        """Count arrived messages for the oldest requests; `size` is their total in bytes."""
        some_full = False
        for request in self.open.values():
            taken = min(count, request.left)
            request.left -= taken
            if request.bytes_left is not None:
                request.bytes_left = max(0, request.bytes_left - size)
                size = 0
            some_full = some_full or request.is_full
            count -= taken
            if count <= 0:
                break
        if some_full:
            self._sort_out_full()

    def end(self, status: Status) -> OpenRequest | None:
        """Remove and return the request that a status ends, and correct the accounting of others.

        Return None if the status is late, because its request has already ended.
        """
        request = self.open.pop(status.token, None)
        if request is None:
            request = self._presumed_full.pop(status.token, None)
        if request is not None and status.pending_messages is not None and self.open:
            # If fewer messages are pending than `request.left`, the difference was counted for the
            # oldest request by mistake. If more are pending, the reverse happened.
            oldest = next(iter(self.open.values()))
            oldest.left = max(0, oldest.left + request.left - status.pending_messages)
            if oldest.bytes_left is not None and status.pending_bytes is not None:
                difference = (request.bytes_left or 0) - status.pending_bytes
                oldest.bytes_left = max(0, oldest.bytes_left + difference)
            self._sort_out_full()
        return request

    def void(self) -> None:
        """Remove all requests, because the server has dropped them or may never reply."""
        self.open.clear()
        self._presumed_full.clear()

    def _sort_out_full(self) -> None:
        for token in [token for token, each in self.open.items() if each.is_full]:
            self._presumed_full[token] = self.open.pop(token)
            if len(self._presumed_full) > _REMEMBERED:
                del self._presumed_full[next(iter(self._presumed_full))]
        if not self.open:
            self._presumed_full.clear()

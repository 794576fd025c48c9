"""The sans-I/O state of one fetch: a single pull request and the events that end it.

Theory of operation: the request ends when it is complete, when a status ends it, when the
connection is lost, or when the server is silent for too long. The server should end the request
before the client's timeout does, so that no request stays open; `is_clean` is true if it did.
"""

from __future__ import annotations

from collections import deque
from typing import Final

from twinstream.core.consume.batch import BatchEnd
from twinstream.core.consume.pin import pin_size
from twinstream.core.consume.pull_error import pull_error
from twinstream.core.consume.pull_request import PullLimits
from twinstream.core.wire.protocol import Frame
from twinstream.core.wire.status import Kind, Status, is_status, read_status
from twinstream.errors import PullError, TwinstreamError

__all__ = ["GRACE", "Fetch", "frame_size"]

# Seconds that a client waits for the end of a request after the server should have sent it.
GRACE: Final = 1.0

_ENDS: Final = {
    Kind.NO_MESSAGES: BatchEnd.NO_MESSAGES,
    Kind.EXPIRED: BatchEnd.EXPIRED,
    Kind.COMPLETED: BatchEnd.FILLED,
    Kind.TOO_BIG: BatchEnd.BYTES_FILLED,
    Kind.INTERRUPTED: BatchEnd.INTERRUPTED,
    Kind.UNPINNED: BatchEnd.UNPINNED,
    Kind.UNKNOWN: BatchEnd.INTERRUPTED,
}


def frame_size(frame: Frame, *, pinned: bool = False) -> int:
    """Return the size of a message as the server counts it against max_bytes (ADR-37).

    For a client that may be `pinned`, this excludes the pin header.
    """
    subject, reply, _, body = frame
    size = len(subject) + len(reply) + len(body) - 2
    return size - pin_size(frame) if pinned else size


class Fetch:
    """The state of one fetch."""

    __slots__ = (
        "_give_up_at",
        "_heard_at",
        "_limits",
        "_size",
        "_token",
        "arrivals",
        "detail",
        "end",
        "error",
        "frames",
        "is_clean",
        "is_over",
    )

    def __init__(self, limits: PullLimits, token: bytes, now: float, patience: float) -> None:
        self._limits: Final = limits
        self._token: Final = token
        self._heard_at = now
        self._give_up_at: Final = now + patience + GRACE
        self._size = 0
        self.frames: Final[list[Frame]] = []
        # Pairs of a number of frames and the time at which they had arrived.
        self.arrivals: Final[list[tuple[int, float]]] = []
        # Whether the fetch ended, with `end` or `error`. An attribute, as it is read very often.
        self.is_over = False
        self.end: BatchEnd | None = None
        self.detail = ""
        self.error: TwinstreamError | None = None
        # Whether the server ended the request, so that no more messages can arrive.
        self.is_clean = True

    def take_all(self, frames: deque[Frame], at: float) -> bool:
        """Take frames that arrived at the time `at`, in order; return whether the fetch is over.

        For a fetch by count, plain messages are moved directly into the batch, at a quarter of the
        cost of `take` for each.
        """
        most, before = self._limits.max_messages, len(self.frames)
        if self._limits.max_bytes is None and not self.is_over:
            if most == 1 and frames and not frames[0][2]:
                # Fast path for a fetch of one message: a third of the steps.
                self.frames.append(frames.popleft())
                self.arrivals.append((1, at))
                self.is_over, self.end = True, BatchEnd.FILLED
                return True
            put, pop = self.frames.append, frames.popleft
            for _ in range(min(len(frames), most - len(self.frames))):
                # A frame with headers may be a status.
                if frames[0][2]:
                    break
                put(pop())
            if len(self.frames) >= most:
                self._finish(BatchEnd.FILLED)
        while frames and not self.is_over:
            self.take(frames.popleft())
        if len(self.frames) > before:
            self.arrivals.append((len(self.frames), at))
        return self.is_over

    def take(self, frame: Frame) -> bool:
        """Take one frame; return whether it is a message of this fetch."""
        if is_status(frame):
            status = read_status(frame)
            if status.token == self._token:
                self._status(status)
            return False
        if self.is_over:
            return False
        self.frames.append(frame)
        limits = self._limits
        if limits.max_bytes is not None:
            self._size += frame_size(frame, pinned=limits.may_pin)
            if self._size >= limits.max_bytes:
                # The server sends at most what was requested. If its own count is still below the
                # limit, for example after an import from another account, it continues.
                self.is_clean = self._size == limits.max_bytes
                self._finish(BatchEnd.BYTES_FILLED)
        if len(self.frames) >= limits.max_messages:
            self._finish(BatchEnd.FILLED)
        return True

    def _finish(self, end: BatchEnd, detail: str | None = None) -> None:
        self.is_over = True
        self.end = end
        if detail is not None:
            self.detail = detail

    def _fail(self, error: TwinstreamError) -> None:
        self.is_over = True
        self.error = error

    def _status(self, status: Status) -> None:
        if not status.ends or self.is_over:
            return
        self.detail = str(status)
        # An unknown status, of a later server, may or may not end the request.
        self.is_clean = status.kind is not Kind.UNKNOWN
        if status.kind is Kind.DELETED and self.frames:
            self._finish(BatchEnd.DELETED)
        elif status.kind is Kind.TOO_BIG and not self.frames:
            self._fail(
                PullError(
                    f"the next message does not fit into {self._limits.max_bytes} bytes: raise"
                    " max_bytes"
                )
            )
        elif status.kind in _ENDS:
            self._finish(_ENDS[status.kind])
        elif self.frames:
            # An error would lose these messages. The next fetch gets the same status and raises.
            self._finish(BatchEnd.INTERRUPTED)
        else:
            self._fail(pull_error(status, self._limits))

    def lost(self) -> None:
        """Record that the connection was lost, and the request with it."""
        if not self.is_over:
            self._finish(BatchEnd.INTERRUPTED, "the connection was lost")
            # The server may not have noticed: after a reconnect it could still serve the request.
            self.is_clean = False

    def check(self, now: float, heard_at: float) -> None:
        """End the fetch if the server was silent for two heartbeats or the fetch timed out."""
        self._heard_at = max(self._heard_at, heard_at)
        if self.is_over or now < self.wake_at():
            return
        self.is_clean = False
        if now >= self._give_up_at:
            self._finish(BatchEnd.EXPIRED, "the server did not end the request in time")
        else:
            silence = f"nothing received for {2 * self._limits.heartbeat:g} s, two heartbeats"
            self._finish(BatchEnd.INTERRUPTED, silence)

    def wake_at(self) -> float:
        """Return the time at which `check` may end the fetch."""
        return min(self._give_up_at, self._heard_at + 2 * self._limits.heartbeat)

"""The buffer of the frames of one subscription.

The reader appends and the owner of the subscription takes. A deque makes both safe between threads
without a lock.
"""

from __future__ import annotations

from collections import deque
from typing import Final, Generic, Protocol, TypeVar

from twinstream.core.connect.handshake import Denied
from twinstream.core.wire.protocol import Frame
from twinstream.errors import TwinstreamError

__all__ = ["Mailbox", "Wakeable"]


class Wakeable(Protocol):
    """The flag that a waiting owner waits for; each twin has its own implementation."""

    def set(self) -> None:
        """Set the flag and wake the waiting owner."""
        ...

    def clear(self) -> None:
        """Clear the flag."""
        ...


S = TypeVar("S", bound=Wakeable)


class Mailbox(Generic[S]):
    """Buffered frames of one subscription, in the order of arrival.

    `signal` is set whenever frames arrive or the state of the connection changes. `heard_at` is the
    monotonic time of the last arrival. The reader maintains it, so that a slow owner does not look
    like a silent server.
    """

    __slots__ = ("asks", "error", "frames", "heard_at", "queue", "sid", "signal", "subject")

    def __init__(self, sid: bytes, subject: bytes, queue: bytes, signal: S, now: float) -> None:
        self.sid: Final = sid
        self.subject: Final = subject
        self.queue: Final = queue
        self.signal: Final = signal
        self.frames: Final[deque[Frame]] = deque()
        self.heard_at = now
        # The subject of the requests whose replies arrive here. Without the permission to publish
        # to it, nothing arrives.
        self.asks = b""
        # Why nothing more can arrive, such as a permission violation.
        self.error: TwinstreamError | None = None

    def is_refused(self, denied: Denied, *, lower: bool = False) -> bool:
        """Return whether `denied` ends this subscription; `lower` if its text is in lower case."""
        if denied.publishing:
            mine = (self.asks, b"")
        else:
            mine = (self.subject, self.queue)
        if lower:
            mine = (mine[0].lower(), mine[1].lower())
        return mine == (denied.subject, denied.queue)

    def refuse(self, error: TwinstreamError) -> None:
        """Record why nothing more can arrive, and wake the owner."""
        self.error = error
        self.signal.set()

    def take_all(self) -> list[Frame]:
        """Clear the flag and take all buffered frames.

        The flag is cleared first: a frame that arrives meanwhile sets it again.
        """
        self.signal.clear()
        frames = self.frames
        taken: list[Frame] = []
        take = frames.popleft
        try:
            for _ in range(len(frames)):
                taken.append(take())
        except IndexError:
            # Another thread took the last frame meanwhile.
            pass
        return taken

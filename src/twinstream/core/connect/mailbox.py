"""Where the frames of one subscription wait until somebody takes them.

The reader appends, the owner takes; a deque makes both safe between threads without a lock.
"""

from __future__ import annotations

from collections import deque
from typing import Final, Generic, Protocol, TypeVar

from twinstream.errors import TwinstreamError
from twinstream.core.connect.handshake import Denied
from twinstream.core.wire.protocol import Frame

__all__ = ["Mailbox", "Wakeable"]


class Wakeable(Protocol):
    """The flag that a waiter sleeps on; each twin has its own."""

    def set(self) -> None:
        """Raise the flag and wake the waiter."""
        ...

    def clear(self) -> None:
        """Lower the flag."""
        ...


S = TypeVar("S", bound=Wakeable)


class Mailbox(Generic[S]):
    """Frames of one subscription in the order of arrival.

    `signal` is raised whenever frames came or the link changed; `heard_at` is when (monotonic),
    kept by the reader so that a slow owner does not look like a silent server.
    """

    __slots__ = ("asks", "error", "frames", "heard_at", "queue", "sid", "signal", "subject")

    def __init__(self, sid: bytes, subject: bytes, queue: bytes, signal: S, now: float) -> None:
        self.sid: Final = sid
        self.subject: Final = subject
        self.queue: Final = queue
        self.signal: Final = signal
        self.frames: Final[deque[Frame]] = deque()
        self.heard_at = now
        # What is asked for the messages that come here: without the right to, none comes.
        self.asks = b""
        # Why nothing can come any more: a permission violation, say.
        self.error: TwinstreamError | None = None

    def is_refused(self, denied: Denied, *, lower: bool = False) -> bool:
        """Tell whether nothing comes any more; `lower` where the server's words lost their case."""
        if denied.publishing:
            mine = (self.asks, b"")
        else:
            mine = (self.subject, self.queue)
        if lower:
            mine = (mine[0].lower(), mine[1].lower())
        return mine == (denied.subject, denied.queue)

    def refuse(self, error: TwinstreamError) -> None:
        """Note why nothing comes any more, and wake the owner."""
        self.error = error
        self.signal.set()

    def take_all(self) -> list[Frame]:
        """Take every frame that is here, and lower the flag.

        The flag goes down first: a frame that arrives meanwhile raises it again.
        """
        self.signal.clear()
        frames = self.frames
        taken: list[Frame] = []
        take = frames.popleft
        try:
            for _ in range(len(frames)):
                taken.append(take())
        except IndexError:
            # Another thread takes too, and had the last one.
            pass
        return taken

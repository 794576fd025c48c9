"""The buffer of the frames of one subscription.

The reader of the connection appends frames, and the owner of the subscription removes them. A deque
allows both in different threads without a lock.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable
from copy import copy
from typing import Final, Generic, Protocol, Self, TypeVar

from twinstream.core.client.handshake import Denied
from twinstream.core.wire.protocol import Frame
from twinstream.errors import TwinstreamError

__all__ = ["Mailbox", "Wakeable"]


class Wakeable(Protocol):
    """A flag that the owner waits for. The sync and the async API implement it differently."""

    def set(self) -> None:
        """Set the flag and wake the waiting owner."""
        ...

    def clear(self) -> None:
        """Clear the flag."""
        ...


S = TypeVar("S", bound=Wakeable)


class Mailbox(Generic[S]):
    """The buffered frames of one subscription, in the order of arrival.

    The reader sets `signal` when frames arrive or the state of the connection changes. It also
    stores the monotonic time of the last arrival in `heard_at`. So a slow owner does not mistake
    its own delay for silence of the server.

    Only the owner of the subscription has a strong reference to the mailbox. If the owner is
    dropped or interrupted before it has closed the mailbox, `on_drop` ends the subscription.
    """

    __slots__ = (
        "__weakref__",
        "asks",
        "error",
        "frames",
        "heard_at",
        "on_drop",
        "owner",
        "queue",
        "sid",
        "signal",
        "subject",
    )

    def __init__(self, sid: bytes, subject: bytes, queue: bytes, signal: S, now: float) -> None:
        self.sid: Final = sid
        self.subject: Final = subject
        self.queue: Final = queue
        self.signal: Final = signal
        self.frames: Final[deque[Frame]] = deque()
        self.heard_at = now
        # The subject of the requests whose replies the subscription receives, or empty. If the user
        # may not publish to this subject, no reply arrives.
        self.asks = b""
        # The reason why no more frames can arrive, such as a permission violation, else None.
        self.error: TwinstreamError | None = None
        # What the program should have closed, for the warning if the mailbox is dropped while it is
        # open. Empty if its owner warns itself, or is always closed.
        self.owner = ""
        # Called with the mailbox if it is dropped while it is open. None after it was closed.
        self.on_drop: Callable[[Self], None] | None = None

    def __del__(self) -> None:
        # The attribute is missing if `__init__` was interrupted.
        on_drop = getattr(self, "on_drop", None)
        if on_drop is not None:
            on_drop(self)

    def is_refused(self, denied: Denied, *, lower: bool = False) -> bool:
        """Return whether `denied` is about this subscription or its requests.

        `lower` is true if the server reported `denied` in lower case. Then the case of subjects is
        ignored.
        """
        if denied.publishing:
            mine = (self.asks, b"")
        else:
            mine = (self.subject, self.queue)
        if lower:
            mine = (mine[0].lower(), mine[1].lower())
        return mine == (denied.subject, denied.queue)

    def refuse(self, error: TwinstreamError) -> None:
        """Record the error that prevents the arrival of further frames, and wake the owner."""
        self.error = error
        self.signal.set()

    def check(self) -> None:
        """Raise a copy of `error`, if there is one.

        The traceback of a raised exception refers to the callers' objects. The mailbox may exist
        longer than they do, so it must not keep them.
        """
        if self.error is not None:
            raise copy(self.error).with_traceback(None)

    def take_all(self) -> list[Frame]:
        """Clear the flag, and remove and return all buffered frames.

        The flag is cleared first, so that a frame that arrives meanwhile sets it again.
        """
        self.signal.clear()
        frames = self.frames
        taken: list[Frame] = []
        take = frames.popleft
        try:
            for _ in range(len(frames)):
                taken.append(take())
        except IndexError:
            # Another thread removed the last frame meanwhile.
            pass
        return taken

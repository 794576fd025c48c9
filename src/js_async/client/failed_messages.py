"""Messages whose processing raised: each is dropped, and the connection continues."""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

from twinstream.core.connect.connection_events import MessagesDropped
from twinstream.core.log.logger import Log

__all__ = ["FailedMessages"]


def _ignore(_: MessagesDropped) -> None:
    pass


class FailedMessages:
    """Reports messages whose delivery raised.

    A client that may publish to one of our subjects must not be able to end the connection. So an
    error in the processing of a message affects only that message.
    """

    def __init__(self, tell: Callable[[MessagesDropped], None] = _ignore) -> None:
        self._tell: Final = tell
        self._log: Final = Log("connection")
        self.count = 0
        """Number of dropped messages."""

    def note(self, subject: bytes, error: Exception) -> None:
        """Report an error and the subject of its message. Called by the reader."""
        self.count += 1
        # Reported at 1, 2, 4, 8 …: a flood of messages must not cause a flood of reports.
        if self.count & (self.count - 1):
            return
        from twinstream.core.log.events import MessageNotRead

        name = subject.decode("utf-8", "replace")
        self._log(MessageNotRead(name, error))
        self._tell(MessagesDropped(name, self.count))

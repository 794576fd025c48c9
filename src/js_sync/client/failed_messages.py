# Generated from src/js_async/client/failed_messages.py by codegen/twin.py. Edit that file instead.
"""Messages that the SDK could not take in: each is dropped, and the connection goes on."""

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

    A client that may publish to one of our subjects must not be able to end the connection: an
    error in the handling of one message concerns that message only.
    """

    def __init__(self, tell: Callable[[MessagesDropped], None] = _ignore) -> None:
        self._tell: Final = tell
        self._log: Final = Log("connection")
        self.count = 0
        """How many there were."""

    def note(self, subject: bytes, error: Exception) -> None:
        """Report an error and the subject of its message; called by the thread that reads."""
        self.count += 1
        # Reported at 1, 2, 4, 8 …: a flood of messages must not become a flood of reports.
        if self.count & (self.count - 1):
            return
        from twinstream.core.log.events import MessageNotRead

        name = subject.decode("utf-8", "replace")
        self._log(MessageNotRead(name, error))
        self._tell(MessagesDropped(name, self.count))

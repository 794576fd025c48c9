"""The report of messages that were dropped because their processing raised an error."""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

from twinstream.core.client.connection_events import MessagesDropped
from twinstream.core.log.logger import Log

__all__ = ["FailedMessages"]


class FailedMessages:
    """The counter and reporter of messages whose processing raised an error.

    The parser drops such a message and continues. Otherwise any client that may publish to one of
    our subjects could end the connection.
    """

    def __init__(self, tell: Callable[[MessagesDropped], None]) -> None:
        self._notify: Final = tell
        self._log: Final = Log("connection")
        self.count = 0
        """Number of dropped messages."""

    def note(self, subject: bytes, error: Exception) -> None:
        """Count a dropped message. Report its subject and error at counts 1, 2, 4, 8 and so on."""
        self.count += 1
        # A flood of messages must not cause a flood of reports.
        if self.count & (self.count - 1):
            return
        from twinstream.core.log.events import MessageNotRead

        name = subject.decode("utf-8", "replace")
        self._log(MessageNotRead(name, error))
        self._notify(MessagesDropped(name, self.count))

"""The length of protocol lines, which a server limits by its `max_control_line`.

A server does not report the limit in its INFO, and it closes the connection after a longer line. So
a connection remembers the line with which it met the limit: sent again after a reconnect, that line
would end the next connection as well.
"""

from __future__ import annotations

from typing import Final

from twinstream.errors import BadArgument

__all__ = ["ControlLines", "check_line", "is_too_long"]

# The default limit is 4096 bytes, of which sizes and blanks take up to 24.
_MOST: Final = 4096 - 24
# The beginning of the text of the server's -ERR.
_EXCEEDED: Final = "maximum control line exceeded"
_SHOWN: Final = 40


def is_too_long(text: str) -> bool:
    """Return whether the text of an -ERR refuses a protocol line because of its length."""
    return text.lower().startswith(_EXCEEDED)


def check_line(subject: bytes, rest: bytes) -> None:
    """Raise `BadArgument` if no server with the default settings accepts a line.

    `rest` is the reply subject of a message, or the queue group of a subscription.
    """
    if len(subject) + len(rest) > _MOST:
        raise _too_long(
            subject,
            rest,
            f"a server with the default max_control_line of 4096 bytes accepts {_MOST}",
        )


class ControlLines:
    """The longest protocol lines of a connection: those it sent, and those the server refused.

    The length of a line is the number of bytes of its subject and its reply subject or queue group.
    """

    __slots__ = ("_refused", "longest")

    def __init__(self) -> None:
        self.longest = 0
        """The length of the longest line since the connect."""
        # The smallest length that a server has refused.
        self._refused = _MOST + 1

    def admit(self, length: int) -> bool:
        """Return whether a line may be sent, and record its length if so.

        Callers skip the call for lines that are not longer than `longest`.
        """
        if length >= self._refused:
            return False
        # Two threads may leave the shorter length here. Then one more line meets the limit.
        self.longest = max(length, self.longest)
        return True

    def check(self, subject: bytes, rest: bytes) -> None:
        """Raise `BadArgument` if `admit` refuses a line with this subject."""
        if self.admit(len(subject) + len(rest)):
            return
        check_line(subject, rest)
        raise _too_long(
            subject,
            rest,
            f"the server closed the connection after a line with {self._refused}, which exceeds its"
            " max_control_line",
        )

    def begin(self) -> None:
        """Forget the lines that were sent, because the client connects again."""
        self.longest = 0

    def note_error(self, text: str) -> None:
        """Remember the longest line as refused, if the text of an -ERR says so.

        The server refused this line or a shorter one, which was sent before it.
        """
        if is_too_long(text) and self.longest:
            self._refused = min(self._refused, self.longest)


def _too_long(subject: bytes, rest: bytes, reason: str) -> BadArgument:
    shown = subject.decode("utf-8", "replace")
    shown = f"{shown[:_SHOWN]}…" if len(shown) > _SHOWN else shown
    length = len(subject) + len(rest)
    return BadArgument(
        f"{shown}: subject and reply subject or queue group have {length} bytes, too many for a"
        f" protocol line: {reason}; use a shorter subject, or raise max_control_line"
    )

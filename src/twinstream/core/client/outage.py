"""The time in which a connection is lost: what to log, and when to stop trying."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from twinstream.core.client.auth import Credentials
from twinstream.core.client.server_pool import ServerAddress
from twinstream.errors import AuthenticationFailed

if TYPE_CHECKING:
    from twinstream.core.observe.operation import Operation

__all__ = ["Outage"]

# Seconds after which the log repeats that the client is not connected, and the interval afterwards.
_FIRST_NOTICES: Final = (60.0, 300.0)
_LATER_NOTICES: Final = 1800.0
# Refusals of the same credentials by one server after which the client gives up.
_MOST_REFUSALS: Final = 2


class Outage:
    """One outage of a connection, which began at the monotonic time `began`.

    Observers see the `operation`, if there is one, until the connection is restored or closed.
    """

    def __init__(self, began: float, operation: Operation | None = None) -> None:
        self.began = began
        self._operation: Final = operation
        self._notices = 0
        self._refused: Final[dict[ServerAddress, tuple[Credentials, int]]] = {}
        self.final: AuthenticationFailed | None = None
        """The refusal after which further attempts are pointless; None if there was none."""

    def note_failure(
        self, address: ServerAddress, credentials: Credentials, error: Exception
    ) -> None:
        """Record a failed attempt. The second refusal of the same credentials is final."""
        if not isinstance(error, AuthenticationFailed) or "timeout" in str(error).lower():
            # The text of a timeout says that the server received no credentials in time.
            return
        last, count = self._refused.get(address, (credentials, 0))
        count = count + 1 if last == credentials else 1
        self._refused[address] = credentials, count
        if count >= _MOST_REFUSALS:
            self.final = error

    def end(self, rounds: int, error: BaseException | None) -> None:
        """Let observers see the end, after this number of rounds of attempts."""
        if self._operation is not None:
            self._operation.attempts = rounds
            self._operation.end(error)

    def notice(self, now: float) -> float | None:
        """Return the seconds since the outage began, if the log should say that it lasts.

        That is so after 1 and 5 minutes, and then after every 30 minutes.
        """
        lasted = now - self.began
        due = self._due_after(lasted)
        if due <= self._notices:
            return None
        self._notices = due
        return lasted

    @staticmethod
    def _due_after(seconds: float) -> int:
        """Return the number of notices that are due `seconds` after the beginning."""
        first = sum(1 for each in _FIRST_NOTICES if seconds >= each)
        return first + int(seconds // _LATER_NOTICES)

"""`Observer`: the base class of objects that see what connections do."""

from __future__ import annotations

from collections.abc import Callable
from typing import ClassVar

from twinstream.core.log.report import Report
from twinstream.core.observe.gauge import Gauge
from twinstream.core.observe.operation import Operation

__all__ = ["Observer"]


class Observer:
    """Sees what a connection does: pass it as `connect(observers=[...])`.

    Override what you need. The methods are called by the task or thread that does the work, in its
    context. Only the end of a message that is published without waiting may be seen by the code
    that reads the socket. The methods must be quick, and must not use the connection. Several
    threads may call them at the same time. After its first error, which is logged, an observer is
    left out; the error never reaches the call.
    """

    sees_calls_only: ClassVar[bool] = False
    """Whether the observer needs requests and published messages alone, as the log does."""

    def opened(self, gauges: Callable[[], list[Gauge]]) -> None:
        """Get ready for a connection. `gauges` returns the current values of its gauges."""

    def begin(self, operation: Operation) -> object:
        """See the beginning of an operation. The returned value is passed to `end`.

        Args:
            operation: The operation.
        """
        return None

    def end(self, operation: Operation, token: object) -> None:
        """See the end of an operation. `token` is what `begin` returned.

        Args:
            operation: The operation.
            token: What `begin` returned.
        """

    def note(self, event: Report) -> None:
        """See an event. Its class shows what happened, and `str(event)` describes it.

        The events are those of the connection (`Disconnected`, `LameDuck` and others), `Received`,
        `Redelivered`, `PullSent`, `DeadLettered` and `LeaseWasLost`.

        Args:
            event: What happened.
        """

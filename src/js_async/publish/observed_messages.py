"""The operations of messages in flight, which observers see from the send to the outcome."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Final

from js_async.publish.inflight import InFlight, Outcome
from twinstream.core.observe.gauge import Gauge
from twinstream.core.observe.observers import Observers
from twinstream.core.observe.operation import Operation
from twinstream.core.observe.publish_context import begin_publish
from twinstream.core.publish.request import publish_headers
from twinstream.errors import OutcomeUnknown, PublishFailure

__all__ = ["ObservedMessages"]


class ObservedMessages:
    """The messages of one pipeline that have an operation. `name` is the call that sends them."""

    def __init__(
        self,
        observers: Observers,
        name: str,
        in_flight: Callable[[], int],
        on_done: Callable[[InFlight, Outcome], bool] | None,
    ) -> None:
        self._observers: Final = observers
        self._name: Final = name
        self._in_flight: Final = in_flight
        self._on_done: Final = on_done
        # By the reply subject of the message.
        self._operations: Final[dict[bytes, Operation]] = {}
        observers.measure(self)

    def gauges(self) -> Iterable[Gauge]:
        """Return the number of messages in flight."""
        yield Gauge("in_flight", self._in_flight())

    def begun(self, entry: InFlight) -> InFlight:
        """Begin the operation of a message; return its entry, with the headers that are added."""
        request, operation = begin_publish(self._observers, entry.request, self._name)
        if operation.added:
            headers = publish_headers(request)
            entry = InFlight(request, entry.subject, entry.reply, headers, entry.started)
        operation.size = len(entry.headers) + len(entry.data)
        self._operations[entry.reply] = operation
        return entry

    def done(self, entry: InFlight, outcome: Outcome) -> bool:
        """Call the pipeline's `on_done`, and end the operation unless it was called before."""
        if not self._is_first(entry, outcome):
            return False
        operation = self._operations.pop(entry.reply, None)
        if operation is None:
            return True
        operation.attempts = entry.attempts
        if isinstance(outcome, PublishFailure):
            operation.end(outcome.peek())
        else:
            operation.stream_name, operation.seq = outcome.stream, outcome.seq
            operation.end()
        return True

    def _is_first(self, entry: InFlight, outcome: Outcome) -> bool:
        if self._on_done is not None:
            return self._on_done(entry, outcome)
        was_recorded, entry.is_recorded = entry.is_recorded, True
        return not was_recorded

    def forget(self, entry: InFlight) -> None:
        """End the operation of a message whose send was interrupted."""
        operation = self._operations.pop(entry.reply, None)
        if operation is not None:
            text = f"{operation.subject}: interrupted during the send, may be stored"
            operation.end(OutcomeUnknown(text))

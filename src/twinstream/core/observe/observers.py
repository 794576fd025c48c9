"""`Observers`: the observers of one connection. Their errors reach no call."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import Any, Final
from weakref import WeakSet

from twinstream.core.deadline import monotonic
from twinstream.core.log.logger import Log
from twinstream.core.log.report import Report
from twinstream.core.observe.events import Received, Redelivered
from twinstream.core.observe.gauge import Gauge, Measured
from twinstream.core.observe.observer import Observer
from twinstream.core.observe.operation import Operation, OperationKind
from twinstream.errors import BadArgument, NotAcknowledgeable

__all__ = ["Observers", "Where"]

_FAILURES: Final = Log("connection")
# What the settling of a message means for the handler of the message.
_OUTCOMES: Final = {"ack": "acknowledged", "nak": "retried", "term": "given up"}

Where = Callable[[], tuple[str, int] | None]
"""A function that returns host and port of the current server."""


class Observers:
    """The observers of one connection.

    `where` returns the address of the server, and `client_name` is the name of the connection.
    """

    sees_calls_only = True
    """Whether there are only observers that see requests and published messages."""

    def __init__(
        self,
        observers: Iterable[Observer],
        where: Where | None = None,
        client_name: str | None = None,
    ) -> None:
        # A tuple that is replaced as a whole, because several threads read it.
        self._observers: tuple[Observer, ...] = ()
        self._where: Final = where
        self._client_name: Final = client_name
        self._measured: Final[WeakSet[Any]] = WeakSet()
        # The running `handle` operations by the identity of their message.
        self._handled: Final[dict[int, Operation]] = {}
        # When the program last received a message, by stream and consumer.
        self._received_at: Final[dict[tuple[str, str], float]] = {}
        for each in observers:
            self.add(each)

    def add(self, observer: Observer) -> None:
        """Add an observer, which sees what begins from now on."""
        if not isinstance(observer, Observer):
            raise BadArgument(
                f"an observer must be an instance of a subclass of Observer, got {observer!r}"
            )
        self._observers = (*self._observers, observer)
        self.sees_calls_only = self.sees_calls_only and observer.sees_calls_only
        if self._where is not None:
            self._call(observer, observer.opened, self.gauges)

    # ---- operations

    def begin(
        self,
        kind: OperationKind,
        name: str,
        subject: str = "",
        *,
        stream: str | None = None,
        consumer: str | None = None,
        size: int | None = None,
        data_size: int | None = None,
        headers: Mapping[str, Any] | None = None,
        message: Any = None,
        count: int | None = None,
    ) -> Operation:
        """Begin an operation. The caller ends it, for example by a `with` block."""
        operation = Operation(
            kind,
            name,
            subject,
            stream_name=stream,
            consumer_name=consumer,
            size=size,
            data_size=data_size,
            headers=headers,
            message=message,
            count=count,
            server=None if self._where is None else self._where(),
            client_name=self._client_name,
            finish=self._end,
        )
        if kind == "handle":
            self._handled[id(message)] = operation
            self._note_receipt(operation, message)
        begun = operation.tokens
        for observer in self._observers:
            token = self._call(observer, observer.begin, operation)
            if begun is not None:
                begun.append((observer, token))
        return operation

    def begin_of(self, kind: OperationKind, name: str, message: Any, **given: Any) -> Operation:
        """Begin an operation about a received message."""
        about = _metadata(message)
        return self.begin(
            kind,
            name,
            message.subject,
            stream=None if about is None else about.stream,
            consumer=None if about is None else about.consumer,
            message=message,
            **given,
        )

    def _end(self, operation: Operation) -> None:
        """End an operation: note the outcome for its messages, and call `end` of the observers.

        An observer that was removed in the meantime is not called.
        """
        begun, operation.tokens = operation.tokens, None
        message = operation.message
        if operation.kind == "handle":
            self._handled.pop(id(message), None)
        elif message is not None and operation.error is None:
            self._note_outcome(message, _OUTCOMES.get(operation.kind))
        elif operation.kind == "receive":
            for each in operation.messages:
                self._note_receipt(operation, each)
        # In reverse order, so that an observer may restore what it has changed in `begin`.
        for observer, token in reversed(begun or ()):
            if observer in self._observers:
                self._call(observer, observer.end, operation, token)

    def note_failure(self, message: Any, error: BaseException) -> None:
        """Record that the handler of a message failed, if the handler's caller handles that."""
        handled = self._handled.get(id(message))
        if handled is not None:
            handled.error = error
            handled.outcome = handled.outcome or "retried"

    def _note_outcome(self, message: Any, outcome: str | None) -> None:
        handled = self._handled.get(id(message))
        if handled is not None and outcome is not None:
            handled.outcome = outcome

    # ---- events

    def note(self, event: Report) -> None:
        """Pass an event to the observers."""
        for observer in self._observers:
            self._call(observer, observer.note, event)

    def note_received(self, message: Any) -> None:
        """Note that an iteration returned a message to the program."""
        about = _metadata(message)
        if about is not None:
            self._note_receipt(None, message)
            self.note(Received(message.subject, about.stream, about.consumer, message))

    def _note_receipt(self, operation: Operation | None, message: Any) -> None:
        """Note that a message was received, and emit `Redelivered` if it was delivered before.

        Does nothing for a message that JetStream did not deliver.
        """
        about = _metadata(message)
        if about is None:
            return
        self._received_at[about.stream, about.consumer] = monotonic()
        if operation is not None and operation.kind == "handle":
            operation.attempts = about.num_delivered
        if about.num_delivered > 1:
            self.note(
                Redelivered(
                    message.subject,
                    about.stream,
                    about.consumer,
                    about.stream_seq,
                    about.num_delivered,
                )
            )

    # ---- gauges

    def measure(self, measured: Measured) -> None:
        """Include the gauges of an object, as long as it exists."""
        self._measured.add(measured)

    def gauges(self) -> list[Gauge]:
        """Return the current gauges of the connection."""
        found = [gauge for each in self._sources() for gauge in each.gauges()]
        now = monotonic()
        for (stream, consumer), at in tuple(self._received_at.items()):
            found.append(Gauge("seconds_since_message", now - at, stream, consumer))
        return found

    def _sources(self) -> list[Measured]:
        while True:
            try:
                return list(self._measured)
            except RuntimeError:
                # Another thread has added an object during the iteration.
                continue

    # ---- calling

    def _call(self, observer: Observer, method: Callable[..., object], *given: object) -> object:
        """Call a method of an observer. After its first error, the observer is left out."""
        try:
            return method(*given)
        except Exception as error:
            self._observers = tuple(each for each in self._observers if each is not observer)
            from twinstream.core.log.events import CallbackFailed

            name = f"observer {type(observer).__name__}, which is left out from now on,"
            _FAILURES(CallbackFailed(name, error))
            return None


def _metadata(message: Any) -> Any:
    """Return the metadata of a message, or None if its reply subject was rewritten."""
    try:
        return message.metadata
    except NotAcknowledgeable:
        return None

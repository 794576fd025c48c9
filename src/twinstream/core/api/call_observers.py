"""The log and `on_call` as observers: both see the finished calls of JetStream's API."""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

from twinstream.core.api.instrumentation import Call
from twinstream.core.log.events import CallbackFailed
from twinstream.core.log.logger import Log
from twinstream.core.observe.observer import Observer
from twinstream.core.observe.observers import Observers
from twinstream.core.observe.operation import Operation
from twinstream.errors import BadArgument, OutcomeUnknown, TwinstreamError

__all__ = ["LOG_ONLY", "CallObserver", "LogObserver"]

_CALLS: Final = Log("api")
_FAILURES: Final = Log("connection")

_NO_CALLS: Final = ("core_publish", "core_request")


class CallObserver(Observer):
    """Passes a `Call` to the `on_call` of a connection. An error of the callback is logged."""

    sees_calls_only = True

    def __init__(self, on_call: Callable[[Call], object]) -> None:
        self._on_call: Final = on_call

    def end(self, operation: Operation, token: object) -> None:
        """Report a finished call."""
        call = _call_of(operation)
        if call is None:
            return
        try:
            self._on_call(call)
        except Exception as error:
            # Do not raise the error: each failure is logged, and later calls are reported, too.
            _FAILURES(CallbackFailed("on_call", error))


class LogObserver(Observer):
    """Logs the finished requests to JetStream's API at level DEBUG."""

    sees_calls_only = True

    def end(self, operation: Operation, token: object) -> None:
        """Log a finished request. Published messages are not logged."""
        if operation.kind == "request" and _CALLS.debugs():
            call = _call_of(operation)
            if call is not None:
                _CALLS(call)


LOG_ONLY: Final = Observers([LogObserver()])
"""For requests of connections without an observer, while the level DEBUG is enabled."""


def _call_of(operation: Operation) -> Call | None:
    """Return the report of an operation, or None if it is not a call of JetStream's API."""
    if operation.kind not in ("request", "publish") or operation.name in _NO_CALLS:
        return None
    if isinstance(operation.error, BadArgument):
        # Such a call sends nothing.
        return None
    is_message = operation.kind == "publish" and operation.name != "atomic_batch"
    return Call(
        kind="publish" if is_message else operation.name,
        subject=operation.subject,
        size=operation.size or 0,
        seconds=operation.seconds,
        attempts=operation.attempts,
        stream_name=operation.stream_name,
        error=_known(operation),
    )


def _known(operation: Operation) -> TwinstreamError | None:
    error = operation.error
    if error is None or isinstance(error, TwinstreamError):
        return error
    text = f"{operation.subject}: interrupted by {type(error).__name__}, it may have been done"
    unknown = OutcomeUnknown(text)
    unknown.__cause__ = error
    return unknown

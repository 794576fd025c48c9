"""Telling a program of the calls that are made for it, each when it is over."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Final, Self

from twinstream.core.api.instrumentation import Call
from twinstream.core.deadline import monotonic
from twinstream.errors import BadArgument, OutcomeUnknown, TwinstreamError
from twinstream.core.log.logger import Log
from twinstream.core.log.events import CallbackFailed
from twinstream.core.publish.request import PublishFailure

if TYPE_CHECKING:
    from js_async.publish.inflight import Outcome, UnderWay

__all__ = ["OnCall", "OpenCall", "telling"]

_CALLS: Final = Log("api")
_FAILURES: Final = Log("connection")

OnCall = Callable[[Call], None]


class OpenCall:
    """A call under way: a context that logs and reports it at its end, however it is left.

    What is refused before anything is sent (`BadArgument`) is no call, and not told.
    Whoever makes the call notes meanwhile what is known of it: `attempts`, `stream`.
    """

    __slots__ = ("_began", "_kind", "_on_call", "_size", "_subject", "attempts", "stream")

    def __init__(
        self, on_call: OnCall | None, kind: str, subject: str, size: int, stream: str | None
    ) -> None:
        self._on_call: Final = on_call
        self._kind: Final = kind
        self._subject: Final = subject
        self._size: Final = size
        self._began: Final = monotonic()
        self.attempts = 1
        self.stream = stream

    def __enter__(self) -> Self:
        return self

    def __exit__(self, _: object, error: BaseException | None, __: object) -> None:
        if isinstance(error, BadArgument):
            return
        call = Call(
            kind=self._kind,
            subject=self._subject,
            size=self._size,
            seconds=monotonic() - self._began,
            attempts=self.attempts,
            stream=self.stream,
            error=self._known(error),
        )
        _CALLS(call)
        if self._on_call is not None:
            _tell(self._on_call, call)

    def _known(self, error: BaseException | None) -> TwinstreamError | None:
        if error is None or isinstance(error, TwinstreamError):
            return error
        text = f"{self._subject}: cut short by {type(error).__name__}, it may have been done"
        unknown = OutcomeUnknown(text)
        unknown.__cause__ = error
        return unknown


def telling(
    on_call: OnCall,
    on_done: Callable[[UnderWay, Outcome], bool] | None,
    forget: Callable[[UnderWay], None],
) -> Callable[[UnderWay, Outcome], bool]:
    """Return an `on_done` of a pipeline that also tells of the call; `forget` is the pipeline's."""

    def is_first(entry: UnderWay, outcome: Outcome) -> bool:
        if on_done is not None:
            return on_done(entry, outcome)
        was_told, entry.is_told = entry.is_told, True
        return not was_told

    def done(entry: UnderWay, outcome: Outcome) -> bool:
        try:
            if not is_first(entry, outcome):
                return False
            call = _call_of(entry, outcome)
            if not isinstance(call.error, BadArgument):
                _tell(on_call, call)
        except BaseException:
            # Interrupted: it is told, and nobody else would give it its outcome.
            if entry.is_told:
                entry.outcome = outcome
                forget(entry)
            raise
        return True

    return done


def _call_of(entry: UnderWay, outcome: Outcome) -> Call:
    stream, error = entry.request.expected_stream, None
    if isinstance(outcome, PublishFailure):
        error = outcome.peek()
    else:
        stream = outcome.stream
    return Call(
        kind="publish",
        subject=entry.given[0],
        size=len(entry.headers) + len(entry.data),
        seconds=monotonic() - entry.started,
        attempts=entry.attempts,
        stream=stream,
        error=error,
    )


def _tell(on_call: OnCall, call: Call) -> None:
    try:
        on_call(call)
    except Exception as error:
        # The call is done, and a thread that reads must not take this for a fault of the socket.
        _FAILURES(CallbackFailed("on_call", error))

"""Reports of finished API calls to the log and to the user's `on_call`."""

from __future__ import annotations

from collections.abc import Callable
from typing import Final, Self

from twinstream.core.api.instrumentation import Call
from twinstream.core.deadline import monotonic
from twinstream.core.log.events import CallbackFailed
from twinstream.core.log.logger import Log
from twinstream.errors import BadArgument, OutcomeUnknown, TwinstreamError

__all__ = ["InstrumentedCall", "OnCall", "tell"]

_CALLS: Final = Log("api")
_FAILURES: Final = Log("connection")

OnCall = Callable[[Call], None]


class InstrumentedCall:
    """A context manager for an API call in progress. Its exit logs and reports the call.

    It does not report a call that raises `BadArgument`, because such a call sends nothing. The
    code in the block updates `attempts` and `stream`.
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
            stream_name=self.stream,
            error=self._known(error),
        )
        _CALLS(call)
        if self._on_call is not None:
            tell(self._on_call, call)

    def _known(self, error: BaseException | None) -> TwinstreamError | None:
        if error is None or isinstance(error, TwinstreamError):
            return error
        text = f"{self._subject}: interrupted by {type(error).__name__}, it may have been done"
        unknown = OutcomeUnknown(text)
        unknown.__cause__ = error
        return unknown


def tell(on_call: OnCall, call: Call) -> None:
    """Pass a finished call to the user's callback. Log an error that the callback raises."""
    try:
        on_call(call)
    except Exception as error:
        # Do not raise the error: the call is complete. The code that reads the socket may run this
        # function, and would treat the error as a failure of the socket.
        _FAILURES(CallbackFailed("on_call", error))

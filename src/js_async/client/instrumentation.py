"""Telling a program of the calls that are made for it, each when it is over."""

from __future__ import annotations

from collections.abc import Callable
from typing import Final, Self

from twinstream.core.api.instrumentation import Call
from twinstream.core.deadline import monotonic
from twinstream.core.log.events import CallbackFailed
from twinstream.core.log.logger import Log
from twinstream.errors import BadArgument, OutcomeUnknown, TwinstreamError

__all__ = ["OnCall", "OpenCall", "tell"]

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
            tell(self._on_call, call)

    def _known(self, error: BaseException | None) -> TwinstreamError | None:
        if error is None or isinstance(error, TwinstreamError):
            return error
        text = f"{self._subject}: cut short by {type(error).__name__}, it may have been done"
        unknown = OutcomeUnknown(text)
        unknown.__cause__ = error
        return unknown


def tell(on_call: OnCall, call: Call) -> None:
    """Pass a call that is over to the program; an error of its callback is logged."""
    try:
        on_call(call)
    except Exception as error:
        # The call is done, and a thread that reads must not take this for a fault of the socket.
        _FAILURES(CallbackFailed("on_call", error))

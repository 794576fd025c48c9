"""Scenarios in which a short time is the point: they are repeated if the process stood still.

for attempt in attempts(2):
    with attempt:
        ...

A file whose tests are all of this kind has `pytestmark = pytest.mark.timed(2)`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import wraps
from inspect import iscoroutinefunction
from threading import Event, Thread
from time import monotonic
from types import TracebackType
from typing import Any, Final

import pytest

__all__ = ["Attempt", "Ticker", "attempts", "timed"]

# The seconds between two ticks.
_TICK: Final = 0.02


class Ticker:
    """The longest time for which no thread of this process ran, within a `with` block."""

    def __init__(self) -> None:
        self._longest = 0.0
        self._last = monotonic()
        self._over: Final = Event()
        self._thread: Final = Thread(target=self._tick, name="ticker", daemon=True)

    def __enter__(self) -> Ticker:
        self._last = monotonic()
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._over.set()
        self._thread.join()

    def _tick(self) -> None:
        while not self._over.wait(_TICK):
            self._note()
        self._note()

    def _note(self) -> None:
        now = monotonic()
        self._longest, self._last = max(self._longest, now - self._last), now

    @property
    def longest(self) -> float:
        """The seconds of the longest stall; read them after the block."""
        return self._longest


class Attempt:
    """One run of a scenario: its error does not count if the process stood still for too long."""

    def __init__(self, limit: float, is_last: bool) -> None:
        self._limit: Final = limit
        self._is_last: Final = is_last
        self._ticker: Final = Ticker()
        self.passed = False
        """Whether the scenario has ended without an error."""

    def __enter__(self) -> Attempt:
        self._ticker.__enter__()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, _: TracebackType | None
    ) -> bool:
        self._ticker.__exit__()
        self.passed = error is None
        if self.passed or self._is_last or self._ticker.longest <= self._limit:
            return False
        return isinstance(error, (Exception, pytest.fail.Exception))


def attempts(seconds: float, times: int = 5) -> Iterator[Attempt]:
    """Return runs of a scenario in which `seconds` matter, until one has passed.

    A failed one is repeated if the process stood still for more than a third of the seconds.
    """
    for number in range(times):
        attempt = Attempt(seconds / 3, number == times - 1)
        yield attempt
        if attempt.passed:
            return


def timed(test: Callable[..., Any], seconds: float) -> Callable[..., Any]:
    """Return a test that is repeated as `attempts` says. It makes all that it needs itself."""
    if iscoroutinefunction(test):

        @wraps(test)
        async def repeated(**values: Any) -> None:
            for attempt in attempts(seconds):
                with attempt:
                    await test(**values)
    else:

        @wraps(test)
        def repeated(**values: Any) -> None:
            for attempt in attempts(seconds):
                with attempt:
                    test(**values)

    return repeated

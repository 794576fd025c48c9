"""Reporters: pass each report to the log, and to the callback of the program if there is one."""

from __future__ import annotations

from collections.abc import Callable, Hashable
from typing import Final, Generic, TypeVar

from twinstream.core.log.logger import Log
from twinstream.core.base.check_callbacks import check_told

__all__ = ["GuardedReporter", "Reporter"]

R = TypeVar("R")


class Reporter(Generic[R]):
    """Logs reports and passes them on, one level lower in the log where there is a callback.

    What the callback raises reaches the caller.
    """

    def __init__(
        self,
        callback: Callable[[R], object] | None,
        name: str = "on_report",
        area: str | None = None,
        *,
        stream: str | None = None,
        consumer: str | None = None,
    ) -> None:
        check_told(callback, name)
        self._callback: Final = callback
        self._name: Final = name
        self.log: Final = Log(area, stream=stream, consumer=consumer, lower=callback is not None)

    def __call__(self, report: R, *, kind: Hashable = None, **given: object) -> None:
        """Log a report, then pass it on; `kind` and `given` are for the log alone."""
        self.log(report, kind=kind, **given)
        self.pass_on(report)

    def pass_on(self, report: R) -> None:
        """Pass a report to the callback without logging it."""
        if self._callback is not None:
            self._callback(report)


class GuardedReporter(Reporter[R]):
    """A reporter whose callback must not disturb the caller: what it raises is logged."""

    def __init__(
        self, callback: Callable[[R], object] | None, name: str, area: str | None = None
    ) -> None:
        super().__init__(callback, name, area)
        self._failures: Final = Log(area)

    def pass_on(self, report: R) -> None:
        """Pass a report to the callback, and log an error that it raises."""
        try:
            super().pass_on(report)
        except Exception as error:
            from twinstream.core.log.events import CallbackFailed

            self._failures(CallbackFailed(self._name, error))

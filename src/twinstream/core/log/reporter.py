"""Reporters, which pass each report to the log and to a callback of the user."""

from __future__ import annotations

from collections.abc import Callable, Hashable
from typing import Final, Generic, TypeVar

from twinstream.core.arguments.check_callbacks import check_callback
from twinstream.core.log.logger import Log
from twinstream.core.log.report import Report

__all__ = ["GuardedReporter", "Reporter"]

R = TypeVar("R")
Logged = TypeVar("Logged", bound=Report)


class Reporter(Generic[R]):
    """A callable that logs reports and passes them to a callback, if there is one.

    With a callback, the log level is one lower. Errors that the callback raises propagate.
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
        check_callback(callback, name)
        self._callback: Final = callback
        self._name: Final = name
        self.log: Final = Log(area, stream=stream, consumer=consumer, lower=callback is not None)

    def __call__(self: Reporter[Logged], report: Logged, *, kind: Hashable = None) -> None:
        """Log a report, then pass it to the callback. `kind` is for `Log` only."""
        self.log(report, kind=kind)
        self.pass_on(report)

    def pass_on(self, report: R) -> None:
        """Pass a report to the callback without logging it."""
        if self._callback is not None:
            self._callback(report)


class GuardedReporter(Reporter[R]):
    """A reporter that logs the errors that its callback raises, and does not propagate them."""

    def __init__(
        self,
        callback: Callable[[R], object] | None,
        name: str,
        area: str | None = None,
        *,
        stream: str | None = None,
    ) -> None:
        super().__init__(callback, name, area, stream=stream)
        self._failures: Final = Log(area, stream=stream)

    def pass_on(self, report: R) -> None:
        """Pass a report to the callback, and log an error that it raises."""
        try:
            super().pass_on(report)
        except Exception as error:
            from twinstream.core.log.events import CallbackFailed

            self._failures(CallbackFailed(self._name, error))

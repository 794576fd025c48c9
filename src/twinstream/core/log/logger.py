"""Pass reports to `logging`, with loggers named `twinstream.<area>`.

The import of `logging` takes milliseconds, so it happens with the first warning. A record below
the level WARNING is visible only if the application has imported `logging` itself, to configure it.
No handler is installed.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Hashable
from typing import TYPE_CHECKING, Any, Final

from twinstream.core.deadline import monotonic
from twinstream.core.log.report import DEBUG, ERROR, WARNING, Report
from twinstream.models.picklable_error import harmless_line

if TYPE_CHECKING:
    from logging import Logger

__all__ = ["EXTRAS", "Log"]

# Seconds after a record within which equal reports count as repeats of it.
_REPEAT_INTERVAL: Final = 60.0
_MAX_KINDS: Final = 200
EXTRAS: Final = {
    "nats_stream_name": ("stream_name", "stream"),
    "nats_consumer_name": ("consumer_name", "consumer"),
    "nats_seq": ("stream_seq", "seq"),
    "nats_subject": ("subject",),
    "nats_delivery": ("attempt",),
}
"""The attributes of each log record, with the report's attributes that contain their values."""


class Log:
    """The log of one object, which adds its stream and consumer to records and limits repeats.

    If `area` is not None, it replaces the `log_area` of a report. If `lower` is true, each record
    is one level lower, because a callback receives the same reports.
    """

    __slots__ = ("_area", "_clock", "_consumer", "_logger", "_lower", "_repeats", "_stream")

    def __init__(
        self,
        area: str | None = None,
        *,
        stream: str | None = None,
        consumer: str | None = None,
        lower: bool = False,
        clock: Callable[[], float] = monotonic,
    ) -> None:
        self._area = area
        self._stream = stream
        self._consumer = consumer
        self._lower = lower
        self._clock = clock
        self._logger: Logger | None = None
        self._repeats: dict[Hashable, _Repeats] = {}

    def debugs(self) -> bool:
        """Return whether DEBUG records are enabled. If not, callers need not create a report."""
        logger = self._logger
        if logger is None:
            if "logging" not in sys.modules:
                return False
            self._logger = logger = _logger(self._area or "")
        return logger.isEnabledFor(DEBUG)

    def __call__(self, report: Report, *, kind: Hashable = None) -> None:
        """Log a report. Reports of equal `kind` count as repeats; None means their `log_kind`."""
        own_level = report.level
        level = max(DEBUG, own_level - 10) if self._lower else own_level
        if level < WARNING and "logging" not in sys.modules:
            # No program has set a level, so the default level WARNING applies.
            return
        logger = _logger(self._area or report.log_area)
        if not logger.isEnabledFor(level):
            return
        is_limited = own_level >= WARNING and report.log_limit != "none"
        repeats = self._count(report, own_level, kind) if is_limited else 0
        is_repeat = repeats is None
        if is_repeat and (own_level < ERROR or report.log_limit == "record"):
            level = DEBUG
            if not logger.isEnabledFor(level):
                return
        error = getattr(report, "error", None)
        has_trace = own_level >= ERROR and not is_repeat and isinstance(error, BaseException)
        trace = error if has_trace else None
        logger.log(level, self._text(report, repeats), exc_info=trace, extra=self._extra(report))

    def _count(self, report: Report, level: int, kind: Hashable) -> int | None:
        """Return the number of repeats since the last record; None if this report is a repeat.

        Reports of one class with the same `level` and `kind` count as repeats.
        """
        kind = type(report), level, report.log_kind if kind is None else kind
        found = self._repeats.get(kind)
        if found is None:
            if len(self._repeats) >= _MAX_KINDS:
                self._repeats.clear()
            found = self._repeats[kind] = _Repeats()
        return found.count(self._clock())

    def _text(self, report: Report, repeats: int | None) -> str:
        """Return the text of a record, which can forge no line and no control sequence."""
        where = "/".join(filter(None, (self._stream, self._consumer)))
        try:
            text = f"{where}: {report}" if where else str(report)
        except Exception:
            # The text contains that of an error of the user, whose `__str__` may raise.
            text = f"{type(report).__name__}, its error cannot be shown"
        return harmless_line(f"{text} (and {repeats} more of this kind)" if repeats else text)

    def _extra(self, report: object) -> dict[str, Any]:
        """Return the extra fields of a log record, from the attributes of a report."""
        found: dict[str, Any] = {}
        for name, sources in EXTRAS.items():
            values = (getattr(report, source, None) for source in sources)
            found[name] = next((value for value in values if value not in (None, "")), None)
        found["nats_stream_name"] = found["nats_stream_name"] or self._stream
        found["nats_consumer_name"] = found["nats_consumer_name"] or self._consumer
        return found


class _Repeats:
    """A counter of repeats, the reports within `_REPEAT_INTERVAL` seconds after a record."""

    __slots__ = ("_due_at", "_missed")

    def __init__(self) -> None:
        self._due_at = 0.0
        self._missed = 0

    def count(self, now: float) -> int | None:
        """Count a report at the time `now`.

        Return None if it is a repeat, else the number of repeats since the last record.
        """
        if now < self._due_at:
            self._missed += 1
            return None
        self._due_at = now + _REPEAT_INTERVAL
        missed, self._missed = self._missed, 0
        return missed


def _logger(area: str) -> Logger:
    import logging

    return logging.getLogger(f"twinstream.{area}")

"""Pass reports to `logging`, with loggers named `twinstream.<area>`.

`twinstream.core.log.table` defines how each report is logged. The import of `logging` takes some
milliseconds, so it happens with the first warning. A record below the level WARNING is visible only
if the application has imported `logging` itself, to configure it. No handler is installed.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Hashable
from typing import TYPE_CHECKING, Any, Final

from twinstream.core.deadline import monotonic
from twinstream.models.restorable import harmless_line

if TYPE_CHECKING:
    from logging import Logger

    from twinstream.core.log.table import Row

__all__ = ["MINOR", "Log"]

_DEBUG: Final = 10
_WARNING: Final = 30
# Seconds after a record within which equal reports count as repeats of it.
_REPEAT_INTERVAL: Final = 60.0
_MAX_KINDS: Final = 200
#: The reports that are always logged below WARNING. If the application has not imported `logging`,
#: they are ignored without loading the table.
MINOR: Final = frozenset(
    {
        "BackedUp",
        "Call",
        "Connected",
        "Elected",
        "Ended",
        "LameDuck",
        "NoDeadLetter",
        "PartitionsAssigned",
        "PartitionsRevoked",
        "Pinned",
        "PullSent",
        "Released",
        "Restored",
        "ServersDiscovered",
        "Started",
        "Unpinned",
        "WorkerStarted",
        "WorkerStopped",
    }
)


class Log:
    """The log of one object, which adds its stream and consumer to records and limits repeats.

    If `area` is not None, it replaces the area that the table has for a report. If `lower` is true,
    each record is one level lower, because a callback receives the same reports.
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
        return logger.isEnabledFor(_DEBUG)

    def __call__(self, report: object, *, kind: Hashable = None, **given: object) -> None:
        """Log a report.

        `given` has values for placeholders of the text that are not attributes of the report.
        Reports with an equal `kind` count as repeats. If `kind` is None, the function `same` of the
        table decides which reports are repeats.
        """
        is_configured = "logging" in sys.modules
        if not is_configured and type(report).__name__ in MINOR:
            return
        from twinstream.core.log.table import row_of

        row = row_of(report)
        level = max(_DEBUG, row.level - 10) if self._lower else row.level
        if level < _WARNING and not is_configured:
            return
        logger = _logger(self._area or row.area)
        if not logger.isEnabledFor(level):
            return
        repeats = 0 if row.limit == "none" else self._count(row, report, kind)
        if repeats is None and row.limit == "record":
            level = _DEBUG
            if not logger.isEnabledFor(level):
                return
        error = getattr(report, "error", None) if row.traceback and repeats is not None else None
        text, values = self._text(row, report, given, repeats)
        # `logging` would treat an empty mapping as an argument that the text does not use.
        values_if_any = (values,) if values else ()
        logger.log(level, text, *values_if_any, exc_info=error, extra=self._extra(report))

    def _count(self, row: Row, report: object, kind: Hashable) -> int | None:
        """Return the number of repeats since the last record; None if this report is a repeat.

        Reports with the same row of the table and the same `kind` count as repeats.
        """
        if kind is None and row.same is not None:
            kind = row.same(report)
        kind = row.name, row.level, kind
        found = self._repeats.get(kind)
        if found is None:
            if len(self._repeats) >= _MAX_KINDS:
                self._repeats.clear()
            found = self._repeats[kind] = _Repeats()
        return found.count(self._clock())

    def _text(
        self, row: Row, report: object, given: dict[str, object], repeats: int | None
    ) -> tuple[str, dict[str, object]]:
        text, values = row.text, row.values(report, given)
        where = "/".join(filter(None, (self._stream, self._consumer)))
        if where:
            text = f"%(where)s: {text}"
            values["where"] = where
        if repeats:
            text = f"{text} (and %(repeats)d more of this kind)"
            values["repeats"] = repeats
        return text, {name: _harmless(value) for name, value in values.items()}

    def _extra(self, report: object) -> dict[str, Any]:
        from twinstream.core.log.table import EXTRAS

        found: dict[str, Any] = {}
        for name, sources in EXTRAS.items():
            values = (getattr(report, source, None) for source in sources)
            found[name] = next((value for value in values if value not in (None, "")), None)
        found["nats_stream"] = found["nats_stream"] or self._stream
        found["nats_consumer"] = found["nats_consumer"] or self._consumer
        return found


class _Shown:
    """A value in a log record, shown with escapes for unprintable characters."""

    __slots__ = ("_value",)

    def __init__(self, value: object) -> None:
        self._value = value

    def __str__(self) -> str:
        return harmless_line(str(self._value))

    def __repr__(self) -> str:
        return harmless_line(repr(self._value))


def _harmless(value: object) -> object:
    """Return a value for the text of a record, which can forge no line and no control sequence."""
    if isinstance(value, str):
        return harmless_line(value)
    return value if isinstance(value, int | float) else _Shown(value)


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

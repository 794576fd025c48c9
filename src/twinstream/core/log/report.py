"""`Report`, the base class of reports: each states its own log record, and `str` is its text."""

from __future__ import annotations

from collections.abc import Hashable
from typing import ClassVar, Final, Literal

__all__ = ["DEBUG", "ERROR", "INFO", "WARNING", "Report"]

# The levels of `logging`, which is imported only for the first record.
DEBUG: Final = 10
INFO: Final = 20
WARNING: Final = 30
ERROR: Final = 40

_NO_DIGITS: Final = dict.fromkeys(range(ord("0"), ord("9") + 1))


class Report:
    """A report or event. Its text is that of its log record.

    A record of level ERROR has the traceback of the report's `error`.
    """

    __slots__ = ()

    log_area: ClassVar[str]
    """The logger is `twinstream.<log_area>`."""
    log_level: ClassVar[int]
    """The level of the record, as a number of `logging`."""
    log_limit: ClassVar[Literal["none", "record", "traceback"]] = "none"
    """How repeats of a WARNING or ERROR are logged.

    `none`: like the first record. `record`: with level DEBUG. `traceback`: a WARNING with level
    DEBUG, an ERROR without its traceback.
    """

    @property
    def level(self) -> int:
        """The level of the log record: `log_level`, unless it depends on the report."""
        return self._level()

    @property
    def log_kind(self) -> Hashable:
        """A key of the report. Reports of one class and level with the same key are repeats.

        It is the type of the report's error and the line of code that raised it. For a report
        without an error, it is the text without digits, which may differ between repeats.
        """
        return self._kind()

    def _level(self) -> int:
        return self.log_level

    def _kind(self) -> Hashable:
        """Return a value that is equal for reports of the same problem.

        For an error it is the type and the line that raised it, otherwise the text without its
        numbers.
        """
        error = getattr(self, "error", None)
        if not isinstance(error, BaseException):
            return str(self).translate(_NO_DIGITS)
        trace = error.__traceback__
        while trace is not None and trace.tb_next is not None:
            trace = trace.tb_next
        place = None if trace is None else (trace.tb_frame.f_code, trace.tb_lineno)
        return type(error), place

"""Which failures a new start of a query may mend, and how to say them in one line."""

from __future__ import annotations

import re
from typing import Final

from twinstream import errors as core
from twinstream.spark import errors as spark

__all__ = ["is_lasting", "kind_of", "sentence", "spark_is_gone"]

#: Errors that another attempt would meet again: somebody has to change something first.
_LASTING: Final[tuple[type[Exception], ...]] = (
    spark.CheckpointError,
    spark.ConfigError,
    spark.DataLossError,
    spark.DecodeFailure,
    spark.JournalError,
    spark.LedgerError,
    spark.OptionError,
    spark.SchemaError,
    core.AuthenticationFailed,
    core.BadArgument,
    core.JetStreamNotEnabled,
    core.PermissionDenied,
    core.StreamNotFound,
    core.Unsupported,
)
_NAMES: Final = frozenset(each.__name__ for each in _LASTING)

#: How Spark passes on what one of its Python processes raised: the end of a traceback, as text.
_RAISED: Final = re.compile(r"^twinstream(?:\.\w+)*\.errors\.(\w+): (.+)$", re.MULTILINE)

#: What anything else in one of them raised: the line below the indented ones.
_TRACEBACK: Final = re.compile(
    r"^Traceback \(most recent call last\):\n(?:[ \t].*\n)+(\S.*)$", re.MULTILINE
)

#: Spark's own words when one of its Python processes has not reported in ten seconds.
_SLOW_START: Final = re.compile(r"Python worker (?:failed )?to connect back")


def is_lasting(error: BaseException) -> bool:
    """Tell whether starting again is in vain."""
    if isinstance(error, _LASTING):
        return True
    found = _RAISED.findall(str(error))
    return bool(found) and found[-1][0] in _NAMES


def kind_of(error: BaseException) -> str:
    """Return the class of what went wrong, also where a Python process of Spark's raised it."""
    found = _RAISED.findall(str(error))
    return str(found[-1][0]) if found else type(error).__name__


def sentence(error: BaseException) -> str:
    """Return what went wrong in one line, without Spark's and Python's tracebacks."""
    text = str(error)
    found = _RAISED.findall(text)
    if found:
        return str(found[-1][1]).strip()
    if _SLOW_START.search(text):
        return (
            "Spark's Python process did not start within the ten seconds that Spark gives it;"
            " the machine is busy."
        )
    others = _TRACEBACK.findall(text)
    if others:
        return str(others[-1]).strip()
    first = next((line.strip() for line in text.splitlines() if line.strip()), "")
    return first or type(error).__name__


def spark_is_gone(error: BaseException) -> bool:
    """Tell whether Spark's Java process does not answer any more."""
    if isinstance(error, core.TwinstreamError):
        return False
    return isinstance(error, ConnectionError) or type(error).__name__ == "Py4JNetworkError"

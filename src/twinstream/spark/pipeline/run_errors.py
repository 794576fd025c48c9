"""Classify errors of sources as transient or permanent, and describe them in one line."""

from __future__ import annotations

import re
from typing import Final

from twinstream import errors as core
from twinstream.spark import errors as spark

__all__ = ["is_lasting", "kind_of", "sentence", "spark_is_gone"]

# The classes of permanent errors. A restart does not help, because the user must first change
# something.
_LASTING: Final[tuple[type[Exception], ...]] = (
    spark.CheckpointError,
    spark.ConfigError,
    spark.DataLossError,
    spark.DecodeFailure,
    spark.JournalError,
    spark.LedgerError,
    spark.OptionError,
    spark.SchemaError,
    spark.StorageUnusable,
    core.AuthenticationFailed,
    core.BadArgument,
    core.JetStreamNotEnabled,
    core.PermissionDenied,
    core.StreamNotFound,
    core.Unsupported,
)
_NAMES: Final = frozenset(each.__name__ for each in _LASTING)

# The last line of a traceback in Spark's text, if a Python process raised an error of this
# package.
_RAISED: Final = re.compile(r"^twinstream(?:\.\w+)*\.errors\.(\w+): (.+)$", re.MULTILINE)

# A traceback in Spark's text with any error. The error is the line after the indented lines.
_TRACEBACK: Final = re.compile(
    r"^Traceback \(most recent call last\):\n(?:[ \t].*\n)+(\S.*)$", re.MULTILINE
)

# Spark's message if one of its Python processes did not connect within ten seconds.
_SLOW_START: Final = re.compile(r"Python worker (?:failed )?to connect back")


def is_lasting(error: BaseException) -> bool:
    """Return whether the error is permanent, so that a restart does not help."""
    if isinstance(error, _LASTING):
        return True
    found = _RAISED.findall(str(error))
    return bool(found) and found[-1][0] in _NAMES


def kind_of(error: BaseException) -> str:
    """Return the name of the error's class, even if a Python process of Spark raised the error."""
    found = _RAISED.findall(str(error))
    return str(found[-1][0]) if found else type(error).__name__


def sentence(error: BaseException) -> str:
    """Return the text of the error in one line, without the tracebacks of Spark and Python."""
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
    """Return whether the error means that Spark's Java process no longer responds."""
    if isinstance(error, core.TwinstreamError):
        return False
    return isinstance(error, ConnectionError) or type(error).__name__ == "Py4JNetworkError"

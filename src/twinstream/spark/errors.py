"""Errors of the Spark source and pipeline, each with the thing, the reason and what to try."""

from __future__ import annotations

from twinstream.errors import TwinstreamError

__all__ = [
    "CheckpointError",
    "ConfigError",
    "DataLossError",
    "DecodeFailure",
    "JavaNotFound",
    "JournalError",
    "LedgerError",
    "OptionError",
    "PipelineBusy",
    "SchemaError",
    "SparkSourceError",
]


class SparkSourceError(TwinstreamError):
    """Base of the errors of this package."""


class OptionError(SparkSourceError, ValueError):
    """An option of the source is missing, unknown or out of bounds; ``option`` is its name."""

    def __init__(self, option: str, reason: str) -> None:
        self.option = option
        self.reason = reason
        super().__init__(f"option {option!r}: {reason}")


class ConfigError(SparkSourceError, ValueError):
    """A pipeline's file has a mistake; ``where`` names the file and the key."""

    def __init__(self, where: str, reason: str) -> None:
        self.where = where
        self.reason = reason
        super().__init__(f"{where}: {reason}")


class PipelineBusy(SparkSourceError):
    """Somebody else works on the folder of a pipeline or a landing."""


class SchemaError(SparkSourceError, ValueError):
    """A schema, JSON or Spark, that the source cannot turn into columns."""


class CheckpointError(SparkSourceError):
    """A checkpoint that does not fit the query that uses it."""


class DataLossError(SparkSourceError):
    """Messages that the query was promised are gone, or the stream is another one by now."""


class DecodeFailure(SparkSourceError):
    """A message that does not fit its schema, in a read that stops at the first (FAILFAST)."""

    def __init__(self, stream: str, seq: int, reason: str) -> None:
        self.stream = stream
        self.seq = seq
        self.reason = reason
        super().__init__(f"stream {stream}, sequence {seq}: {reason}")


class JournalError(SparkSourceError):
    """A landing folder whose files do not agree with its journal."""


class LedgerError(SparkSourceError):
    """A repeated write that does not continue what the ledger says was written."""


class JavaNotFound(SparkSourceError):
    """No Java that Spark can run on."""

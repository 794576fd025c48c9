"""Errors of the Spark source and pipeline; each message has the object, the reason and a remedy."""

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
    """Base class of the errors of this package."""


class OptionError(SparkSourceError, ValueError):
    """An option of the source or sink is missing, unknown or out of range.

    Attributes:
        option: the option's name.
        reason: the message without the name.
    """

    def __init__(self, option: str, reason: str) -> None:
        self.option = option
        self.reason = reason
        super().__init__(f"option {option!r}: {reason}")


class ConfigError(SparkSourceError, ValueError):
    """A pipeline's configuration file is invalid.

    Attributes:
        where: the file and the key.
        reason: the message without ``where``.
    """

    def __init__(self, where: str, reason: str) -> None:
        self.where = where
        self.reason = reason
        super().__init__(f"{where}: {reason}")


class PipelineBusy(SparkSourceError):
    """Another process is using the folder of a pipeline or a landing."""


class SchemaError(SparkSourceError, ValueError):
    """The source cannot convert a JSON Schema or a Spark schema to columns."""


class CheckpointError(SparkSourceError):
    """The checkpoint does not match the query that uses it."""


class DataLossError(SparkSourceError):
    """Messages were removed before the query read them, or the stream was replaced by another."""


class DecodeFailure(SparkSourceError):
    """A message does not match its schema, in a read with mode FAILFAST.

    Attributes:
        stream: the stream's name.
        seq: the message's sequence.
        reason: why it does not match.
    """

    def __init__(self, stream: str, seq: int, reason: str) -> None:
        self.stream = stream
        self.seq = seq
        self.reason = reason
        super().__init__(f"stream {stream}, sequence {seq}: {reason}")


class JournalError(SparkSourceError):
    """The files of a landing folder do not match its journal."""


class LedgerError(SparkSourceError):
    """A repeated write does not match what the ledger records as written."""


class JavaNotFound(SparkSourceError):
    """No Java was found that Spark can run on."""

"""The errors of the Spark source, the sink and the pipeline.

Each message names the object, the reason and a remedy.
"""

from __future__ import annotations

from twinstream.errors import TwinstreamError
from twinstream.lake.errors import JournalError, StorageError, StorageUnusable

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
    "StorageError",
    "StorageUnusable",
]


class SparkSourceError(TwinstreamError):
    """The base class of the errors of this package.

    What to do: See the class of the error, and its text.
    """


class OptionError(SparkSourceError, ValueError):
    """Raised if an option of the source or sink is missing, unknown or invalid.

    What to do: Correct the option that the text names.

    Attributes:
        option: the option's name.
        reason: the text without the name.
    """

    def __init__(self, option: str, reason: str) -> None:
        self.option = option
        self.reason = reason
        super().__init__(f"option {option!r}: {reason}")


class ConfigError(SparkSourceError, ValueError):
    """Raised if a pipeline's configuration file is invalid.

    Attributes:
        where: the file and the key.
        reason: the text without `where`.
    """

    def __init__(self, where: str, reason: str) -> None:
        self.where = where
        self.reason = reason
        super().__init__(f"{where}: {reason}")


class PipelineBusy(SparkSourceError):
    """Raised if another process uses the folder of a pipeline or a landing."""

    user: str = ""
    """What the other process does, and which process it is."""

    @classmethod
    def of(cls, folder: object, user: str) -> PipelineBusy:
        """Return the error for a folder that a process uses."""
        error = cls(f"{folder} is in use by {user}; wait until it has ended, or stop it")
        error.user = user
        return error


class SchemaError(SparkSourceError, ValueError):
    """Raised if a JSON Schema, a Spark schema or rows do not fit the source, sink or tables.

    What to do: Correct the schema, or change the rows or the table so that they fit.
    """


class CheckpointError(SparkSourceError):
    """Raised if the checkpoint does not match the query that uses it."""


class DataLossError(SparkSourceError):
    """Raised if messages were removed before they were read, or if the stream was replaced.

    What to do: Start the query with a new checkpoint, or set `failOnDataLoss` to `false`; keep
    messages in the stream for longer.
    """


class DecodeFailure(SparkSourceError):
    """Raised in a read with mode FAILFAST if a message does not match the schema of the read.

    Attributes:
        stream: the stream's name.
        seq: the message's sequence.
        reason: why the message does not match.
    """

    def __init__(self, stream: str, seq: int, reason: str) -> None:
        self.stream = stream
        self.seq = seq
        self.reason = reason
        super().__init__(f"stream {stream}, sequence {seq}: {reason}")


class LedgerError(SparkSourceError):
    """Raised if the rows of a repeated write do not match the rows that the ledger records."""


class JavaNotFound(SparkSourceError):
    """Raised if no Java was found that Spark can run on."""

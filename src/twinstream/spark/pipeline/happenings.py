"""The events that a running pipeline reports."""

from __future__ import annotations

from typing import TypeAlias

from attrs import frozen

from twinstream.spark.pipeline.state.batch_log import BatchEntry

__all__ = ["Ended", "Failed", "Happening", "Landed", "Released", "Started"]


@frozen
class Started:
    """Reported when a query was started. It continues at sequence ``position`` of the stream."""

    source: str
    position: int
    backlog: int
    """The number of sequences of the stream that are not landed yet."""


@frozen
class Landed:
    """Reported when a batch was landed in its tables."""

    source: str
    entry: BatchEntry


@frozen
class Released:
    """Reported when the messages below sequence ``end`` were released.

    ``mode`` is the source's setting ``commit``. ``removed`` is the number of messages that a purge
    removed from the stream; it is 0 for a bookmark.
    """

    source: str
    mode: str
    end: int
    removed: int


@frozen
class Failed:
    """Reported when a query failed.

    The query restarts in ``retry_in`` seconds, or never if ``retry_in`` is ``None``.
    """

    source: str
    error: str
    retry_in: float | None
    kind: str
    """The name of the error's class."""
    err_code: int | None = None
    """The server's error code if the server refused a request, otherwise ``None``."""


@frozen
class Ended:
    """Reported when a source ended without an error.

    Either all messages are landed, or a stop was requested.
    """

    source: str


Happening: TypeAlias = Started | Landed | Released | Failed | Ended

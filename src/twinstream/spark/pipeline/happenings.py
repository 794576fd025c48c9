"""The events that a running pipeline reports."""

from __future__ import annotations

from typing import TypeAlias

from attrs import frozen

from twinstream.spark.pipeline.batch_log import BatchEntry

__all__ = ["Ended", "Failed", "Happening", "Landed", "Released", "Started"]


@frozen
class Started:
    """A query was started; it continues at sequence ``position``."""

    source: str
    position: int
    backlog: int
    """Number of sequences to land."""


@frozen
class Landed:
    """A batch was landed in its tables."""

    source: str
    entry: BatchEntry


@frozen
class Released:
    """The stream was released up to ``end``, which removed ``removed`` messages."""

    source: str
    mode: str
    end: int
    removed: int


@frozen
class Failed:
    """A query failed; it restarts in ``retry_in`` seconds, or never if this is ``None``."""

    source: str
    error: str
    retry_in: float | None
    kind: str
    """The class of the error."""
    err_code: int | None = None
    """The server's error code, if the server refused a request."""


@frozen
class Ended:
    """A source ended without an error: everything is landed, or a stop was requested."""

    source: str


Happening: TypeAlias = Started | Landed | Released | Failed | Ended

"""What a running pipeline tells whoever watches it."""

from __future__ import annotations

from typing import TypeAlias

from attrs import frozen

from twinstream.spark.pipeline.batch_log import BatchEntry

__all__ = ["Ended", "Failed", "Happening", "Landed", "Released", "Started"]


@frozen
class Started:
    """A query runs; it goes on at sequence ``position``."""

    source: str
    position: int
    backlog: int
    """Sequences that wait."""


@frozen
class Landed:
    """A batch is in its tables."""

    source: str
    entry: BatchEntry


@frozen
class Released:
    """The stream was told that all below ``end`` is landed; that removed ``removed`` messages."""

    source: str
    mode: str
    end: int
    removed: int


@frozen
class Failed:
    """A query ended with an error; it starts again in ``retry_in`` seconds, never if ``None``."""

    source: str
    error: str
    retry_in: float | None
    kind: str
    """The class of the error."""
    err_code: int | None = None
    """The server's, where it was the server that refused."""


@frozen
class Ended:
    """A source ended well: all is landed, or somebody asked to stop."""

    source: str


Happening: TypeAlias = Started | Landed | Released | Failed | Ended

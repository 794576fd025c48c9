"""The offset of a streaming read: for each stream, where the next batch begins.

It is what Spark writes ahead of a batch and reads after a crash, so it holds all that a replay
must have the same: the bounds, and into how many ranges they were split. As JSON::

    {"v": 1, "streams": {"ORDERS": {"next": 101, "created": "…", "filter": "orders.>", "parts": 2,
                                    "mark": {"seq": 170, "time": "…"}}}}
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final, cast

from attrs import asdict, field, frozen

from twinstream.spark.errors import CheckpointError
from twinstream.spark.source.stream_mark import Mark

__all__ = ["Offset", "Position"]

_VERSION: Final = 1


@frozen
class Position:
    """Where one stream stands.

    ``next`` is the first sequence that is not read. ``created`` is the creation time of the
    stream, which tells it from a later one of the same name; ``filter`` is the subject filter of
    the read. ``parts`` says into how many ranges the batch that ends here is split. ``since`` is
    where that batch begins when the offset before it does not say: the stream is new in the read.
    ``mark`` is the last message that the stream had when this was planned, which tells it from an
    earlier state of it; offsets of older releases have none.
    """

    next: int
    created: str
    filter: str = ""
    parts: int = 1
    since: int | None = None
    mark: Mark | None = None

    def to_json(self) -> dict[str, Any]:
        """Return the members that Spark stores."""
        stored = asdict(self)
        for name in ("since", "mark"):
            if stored[name] is None:
                del stored[name]
        return stored

    @classmethod
    def from_json(cls, value: Mapping[str, Any]) -> Position:
        """Read the members that Spark stored."""
        return cls(**Mark.read_in(value))


@frozen
class Offset:
    """The positions of all streams of a read."""

    streams: Mapping[str, Position] = field(factory=dict[str, Position])

    def to_json(self) -> dict[str, Any]:
        """Return the JSON that Spark stores, always in the same order."""
        ordered = {name: self.streams[name].to_json() for name in sorted(self.streams)}
        return {"v": _VERSION, "streams": ordered}

    @classmethod
    def from_json(cls, value: Mapping[str, Any]) -> Offset:
        """Read what Spark stored. Raises `CheckpointError` for what this release cannot read."""
        if value.get("v") != _VERSION:
            raise CheckpointError(
                f"the checkpoint holds an offset of version {value.get('v')!r}, this release reads"
                f" version {_VERSION}; use the release that wrote it, or a new checkpoint"
            )
        try:
            found = cast(Mapping[str, Mapping[str, Any]], value["streams"])
            return cls({name: Position.from_json(members) for name, members in found.items()})
        except (AttributeError, KeyError, TypeError) as error:
            raise CheckpointError(
                f"the checkpoint holds no offset of this source: {error}"
            ) from error

"""The offset of a streaming read: the start of the next batch in each stream.

Spark writes it before a batch and reads it after a crash. So it holds all that a replay needs to
be identical: the bounds, and the number of ranges they were split into. As JSON::

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
    """The position of a read in one stream.

    ``next`` is the first sequence that is not read yet. ``created`` is the creation time of the
    stream, which distinguishes it from a later stream of the same name. ``filter`` is the subject
    filter of the read. ``parts`` is the number of ranges of the batch that ends here. ``since`` is
    the start of that batch if the previous offset does not hold it, as for a stream that is new in
    the read. ``mark`` is the last message of the stream when the batch was planned, which
    distinguishes the stream from an earlier state of itself; offsets of older releases have none.
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
        """Read what Spark stored. Raises `CheckpointError` if this release cannot read it."""
        if value.get("v") != _VERSION:
            raise CheckpointError(
                f"the checkpoint has an offset of version {value.get('v')!r}, this release reads"
                f" version {_VERSION}; use the release that wrote it, or a new checkpoint"
            )
        try:
            found = cast(Mapping[str, Mapping[str, Any]], value["streams"])
            return cls({name: Position.from_json(members) for name, members in found.items()})
        except (AttributeError, KeyError, TypeError) as error:
            raise CheckpointError(
                f"the checkpoint has no offset of this source: {error}"
            ) from error

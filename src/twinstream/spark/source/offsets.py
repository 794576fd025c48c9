"""The offset of a streaming read: the start of the next batch in each stream.

Spark writes an offset before a batch and reads it after a crash. So it contains all that Spark
needs to read the same batch again: the bounds, and the number of ranges between them. As JSON::

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
    stream; it distinguishes the stream from a later one of the same name. ``filter`` is the subject
    filter of the read. ``parts`` is the number of ranges of the batch that ends at this position.
    ``since`` is the start of that batch if the previous offset does not contain it, for example for
    a stream that was added to the read. ``mark`` is the last message of the stream when the batch
    was planned; it distinguishes the stream from an earlier state of the same stream. Offsets of
    older releases have no mark.
    """

    next: int
    created: str
    filter: str = ""
    parts: int = 1
    since: int | None = None
    mark: Mark | None = None

    def to_json(self) -> dict[str, Any]:
        """Return the members of the JSON object that Spark stores."""
        stored = asdict(self)
        for name in ("since", "mark"):
            if stored[name] is None:
                del stored[name]
        return stored

    @classmethod
    def from_json(cls, value: Mapping[str, Any]) -> Position:
        """Return the position from the members that Spark stored."""
        return cls(**Mark.read_in(value))


@frozen
class Offset:
    """The positions of all streams of a read."""

    streams: Mapping[str, Position] = field(factory=dict[str, Position])

    def to_json(self) -> dict[str, Any]:
        """Return the JSON object that Spark stores, with streams in the order of their names."""
        ordered = {name: self.streams[name].to_json() for name in sorted(self.streams)}
        return {"v": _VERSION, "streams": ordered}

    @classmethod
    def from_json(cls, value: Mapping[str, Any]) -> Offset:
        """Return the offset that Spark stored. Raises `CheckpointError` for another format."""
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

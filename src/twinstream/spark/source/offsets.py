"""The offset of a streaming read: the start of the next batch in each stream.

Spark stores the offset at the end of a batch before the batch runs. After a crash, Spark passes the
stored offsets to the source, which plans the same batch again. So an offset contains the bounds of
the batch and the number of its ranges. Spark stores an offset as JSON::

    {"v": 1, "streams": {"ORDERS": {"next": 101, "created": "…", "filter": "orders.>", "parts": 2,
                                    "mark": {"seq": 170, "time": "…"}}}}
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final, cast

from attrs import asdict, field, frozen

from twinstream.lake.stored_members import checked_members
from twinstream.lake.stream_mark import Mark
from twinstream.spark.errors import CheckpointError

__all__ = ["Offset", "Position"]

_VERSION: Final = 1
# Each range of a batch is a task of Spark.
_MOST_PARTS: Final = 10_000_000


@frozen
class Position:
    """The position of a read in one stream.

    `next` is the first sequence that is not read yet. `created` is the creation time of the
    stream; it distinguishes the stream from a later stream of the same name. `filter` has the
    subject filters of the read, separated by commas. `parts` is the number of ranges of the batch
    that ends at this position. `since` is the first sequence of that batch, or `None` if the
    batch starts at `next` of the previous offset; it is set, for example, for a stream that was
    added to the read. `mark` is the last message of the stream when the batch was planned. It
    shows whether the stream was restored to an earlier state. It is `None` in offsets of older
    releases.
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
        members = checked_members(cls, Mark.read_in(value))
        if members.get("parts", 1) > _MOST_PARTS:
            raise ValueError(f"parts is {members['parts']}")
        return cls(**members)


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
                f" version {_VERSION}; use the release that wrote it"
            )
        try:
            found = cast(Mapping[str, Mapping[str, Any]], value["streams"])
            return cls({name: Position.from_json(members) for name, members in found.items()})
        except (AttributeError, KeyError, TypeError, ValueError) as error:
            raise CheckpointError(
                f"the checkpoint has no offset of this source: {error}"
            ) from error

"""The plan of a batch: which sequences it has, of which stream, and how tasks divide them."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import UTC, datetime
from typing import Any

from attrs import field, frozen

from twinstream.lake.stored_members import checked_members
from twinstream.lake.stream_mark import Mark

__all__ = ["Plan", "now"]


def now() -> str:
    """Return the current time as RFC 3339, in milliseconds."""
    return datetime.now(UTC).isoformat(timespec="milliseconds")


@frozen(kw_only=True)
class Plan:
    """The plan of one batch. Every attempt to land the batch uses the same plan.

    `start` is inclusive, `end` is exclusive. `created` is the creation time of the stream, which
    distinguishes it from a later stream of the same name. `mark` is the last message of the stream,
    which shows whether the stream was restored to an earlier state. `filter` has the subjects to
    land, separated by commas; it is empty for all subjects. `parts` is the number of tasks.
    `schema` is a digest of everything that decides into which table and columns a message is
    landed. `began` is when the plan was made.
    """

    batch: int
    start: int
    end: int
    created: str
    mark: Mark | None = None
    filter: str = ""
    parts: int = 1
    schema: str = ""
    began: str = field(factory=now)

    @classmethod
    def from_json(cls, value: Mapping[str, Any]) -> Plan:
        """Return the plan that a JSON object contains."""
        return cls(**checked_members(cls, Mark.read_in(value)))

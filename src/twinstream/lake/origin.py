"""Where a source began: its stream, and the first sequence that it lands."""

from __future__ import annotations

import uuid
from collections.abc import Mapping
from typing import Any

from attrs import evolve, field, frozen

from twinstream.lake.stored_members import checked_members

__all__ = ["Origin"]


def _new_id() -> str:
    return uuid.uuid4().hex


@frozen(kw_only=True)
class Origin:
    """The beginning of a source, which is decided before its first batch.

    `seq` is the first sequence of the first batch. `created` is the creation time of the stream,
    which differs from that of a later stream of the same name. `id` identifies the source in the
    transactions of tables. It never changes: of two drivers with different IDs, both could add a
    batch to a table. `number` counts the origins that this one replaces.
    """

    stream: str
    created: str
    seq: int
    id: str = field(factory=_new_id)
    number: int = 0

    def replaced_by(self, later: Origin) -> Origin:
        """Return `later` as the origin that replaces this one, before the first batch."""
        return evolve(later, id=self.id, number=self.number + 1)

    @classmethod
    def from_json(cls, value: Mapping[str, Any]) -> Origin:
        """Return the origin that a JSON object contains."""
        return cls(**checked_members(cls, value))

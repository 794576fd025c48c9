"""Where a source began: its stream, and the first sequence that it lands."""

from __future__ import annotations

import uuid
from collections.abc import Mapping
from typing import Any

from attrs import field, frozen

from twinstream.lake.stored_members import checked_members

__all__ = ["Origin"]


def _new_id() -> str:
    return uuid.uuid4().hex


@frozen(kw_only=True)
class Origin:
    """The beginning of a source, which is decided before its first batch.

    `seq` is the first sequence of the first batch. `created` is the creation time of the stream,
    which differs from that of a later stream of the same name. `id` identifies the source in the
    transactions of Delta tables.
    """

    stream: str
    created: str
    seq: int
    id: str = field(factory=_new_id)

    @classmethod
    def from_json(cls, value: Mapping[str, Any]) -> Origin:
        """Return the origin that a JSON object contains."""
        return cls(**checked_members(cls, value))

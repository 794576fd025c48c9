"""What the filters of a consumer let through."""

from __future__ import annotations

from twinstream.models._json import JsonObject
from twinstream.models._overlaps import first_related
from twinstream.models._subjects import is_contained


def filters_of(members: JsonObject) -> list[str]:
    """Return the filters of a stored consumer config; none at all lets everything through."""
    one = members.get("filter_subject")
    return [one] if one else list(members.get("filter_subjects") or [">"])


def covers(filters: list[str], subjects: list[str]) -> bool:
    """Whether each of ``subjects`` is wholly within one of ``filters``."""
    return len(first_related(subjects, filters, is_contained)) == len(subjects)

"""The filters of a stored consumer config, and whether they cover given subjects."""

from __future__ import annotations

from twinstream.models.codec.json_object import JsonObject
from twinstream.models.names.overlaps import first_related
from twinstream.models.names.subjects import is_contained


def filters_of(members: JsonObject) -> list[str]:
    """Return the filters of a stored consumer config; `[">"]` if the config has no filter."""
    one = members.get("filter_subject")
    return [one] if one else list(members.get("filter_subjects") or [">"])


def covers(filters: list[str], subjects: list[str]) -> bool:
    """Whether each of `subjects` is completely contained in one of `filters`."""
    return len(first_related(subjects, filters, is_contained)) == len(subjects)

"""The start time of a mirror in updates. Servers compare its text, not the time."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, cast

from twinstream.models.files.document import TextError
from twinstream.models.times.go_time import go_time, go_time_text
from twinstream.models.validation import Config, members_of


def keep_start(old: Config, new: Config) -> Mapping[str, Any] | None:
    """Return the members of `new` with the start time of its mirror written as in `old`.

    Servers (2.11 to 2.15) refuse an update that contains the same time in another time zone.

    Return None if no change is possible or necessary. This is so if the times differ, are already
    written alike, or one is absent, or if a config cannot be read.
    """
    try:
        before, members = _start(members_of(old)), members_of(new)
    except TextError:
        return None
    after = _start(members)
    if before is None or after is None or go_time(before) != go_time(after):
        return None
    if go_time_text(before) == go_time_text(after):
        return None
    return {**members, "mirror": {**members["mirror"], "opt_start_time": before}}


def _start(members: object) -> str | None:
    """Return `mirror.opt_start_time`, or None if it is absent or no server accepts it."""
    value: Any = members
    for name in ("mirror", "opt_start_time"):
        value = cast("Mapping[str, Any]", value).get(name) if isinstance(value, Mapping) else None
    return value if isinstance(value, str) and go_time(value) is not None else None

"""Validate the TTL of keys, with the rules of the server for the bucket.

Source: ADR-43, ADR-48; servers 2.11 to 2.15. The server ignores fractions of a second. In a bucket
with a history, it raises a TTL that is below `limit_marker_ttl` to this value.
"""

from __future__ import annotations

from math import ceil

from twinstream.core.deadline import Seconds, finite_seconds
from twinstream.core.publish.ttl import NEVER
from twinstream.errors import BadArgument
from twinstream.models import StreamConfig
from twinstream.records.publish_request import Ttl

__all__ = ["check_key_ttl", "whole_ttl"]


def whole_ttl(ttl: Seconds | str, name: str = "ttl") -> Ttl:
    """Return a TTL in whole seconds, rounded up so that no key expires early.

    `never` is returned unchanged. Raises `BadArgument` for other text and for less than 1 second;
    `name` is used in the message.
    """
    if ttl == NEVER:
        return NEVER
    if isinstance(ttl, str):
        raise BadArgument(f"{name} must be seconds or 'never', got {ttl!r}")
    given = finite_seconds(ttl, name)
    if given < 1:
        raise BadArgument(f"{name} must be at least 1 second, got {ttl!r}")
    return ceil(given)


def check_key_ttl(ttl: Ttl, config: StreamConfig, *, single: bool) -> None:
    """Raise `BadArgument` if the bucket would not respect a TTL.

    `single` is true for writes whose TTL requires a bucket with `history=1`.
    """
    keeps_one = config.max_msgs_per_subject == 1
    if ttl == NEVER or keeps_one:
        return
    if single:
        raise BadArgument(
            f"a TTL needs a bucket with history=1, this one keeps {config.max_msgs_per_subject}:"
            " when the value expired, an older one would reappear. create and purge accept a TTL"
        )
    marker = config.subject_delete_marker_ttl
    least = marker.total_seconds() if marker else 0.0
    if finite_seconds(ttl) < least:
        raise BadArgument(
            f"ttl of {ttl} s is below limit_marker_ttl, {least:g} s: in a bucket with a history,"
            " the server would raise it to limit_marker_ttl; give a longer ttl, a bucket a shorter"
            " limit_marker_ttl, or history=1"
        )

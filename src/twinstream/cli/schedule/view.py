"""Format schedules for people, or convert them to JSON."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, Any

from twinstream.cli.message.message_view import payload
from twinstream.cli.screen import shown_time
from twinstream.cli.value_text import in_time
from twinstream.errors import BadArgument

if TYPE_CHECKING:
    from twinstream.core.schedules.schedules import StoredSchedule
    from twinstream.models import Timestamp


def in_words(at: Timestamp) -> str:
    """Return a time as text, such as `due ... UTC (in 5m)`; a past time ends in `(now)`."""
    remaining = timedelta(seconds=round((at - datetime.now(UTC)).total_seconds()))
    when = shown_time(at)
    return (
        f"due {when} (in {in_time(remaining)})" if remaining > timedelta(0) else f"due {when} (now)"
    )


def next_of(found: StoredSchedule) -> Timestamp | None:
    """Return the next time of a schedule, or None if its pattern cannot be parsed."""
    try:
        return found.next_times(datetime.now(UTC), 1)[0]
    except BadArgument:
        return None  # a pattern of a newer server, or a time zone that this machine lacks


def as_json_object(found: StoredSchedule) -> dict[str, Any]:
    """Return a schedule as a JSON object.

    The payload is in `data`, or in `data_base64` if it is not UTF-8. `next` is null if `next_of`
    returns None.
    """
    due = next_of(found)
    return {
        "subject": found.subject,
        "schedule": found.schedule.pattern,
        "time_zone": found.schedule.time_zone,
        "target": found.target,
        "source": found.source,
        "ttl": found.ttl,
        "rollup": found.rollup,
        "next": due.rfc3339() if due else None,
        "headers": [list(pair) for pair in found.headers.pairs],
        **payload(found.data),
        "stored": found.time.rfc3339(),
        "seq": found.seq,
    }

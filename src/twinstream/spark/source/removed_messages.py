"""Decide whether messages that were removed before they were read were lost or replaced.

The limits of a stream (`max_age`, `max_msgs`, `max_bytes`) remove the oldest messages, and a
purge removes the messages that it selects. If such messages were not read before, they are lost.
Other messages are removed because later messages replaced them (`max_msgs_per_subject`, rollups),
or because their lifetime ended (TTL). Such a removal is no loss. It changes the first sequence of
the stream only if it removes the first message.

The server does not report why a message was removed. If the configuration of the stream allows
replacements or TTLs, a removal counts as a loss in three cases:

- acknowledgements may have removed the messages;
- the state and the configuration of the stream do not exclude that a limit removed them;
- the stream is empty and allows no TTLs. A replacement cannot be the reason, because it always
  leaves the newest message.

On such a stream, a purge that leaves messages cannot be distinguished from a replacement. So the
purge does not count as a loss.
"""

from __future__ import annotations

from typing import Final

from twinstream.lake.stream_mark import Mark
from twinstream.models import Timestamp
from twinstream.spark.source.stream_state import StreamState

__all__ = ["not_before", "why_lost"]

_SECOND: Final = 1_000_000_000


def why_lost(state: StreamState, low: int, since: str | None) -> str | None:
    """Return why removed messages from sequence `low` on count as lost, or `None` if they do not.

    No message from `low` on was stored before `since` (RFC 3339); `None` means that no such
    time is known.
    """
    keeping = state.keeping
    if not keeping.replaces:
        return "its limits or a purge removed them"
    if keeping.is_consumed:
        return "acknowledgements may have removed them"
    if not state.messages and not keeping.expires:
        return "a purge or deletes left it empty"
    if keeping.max_age and not _is_younger(state.now, since, keeping.max_age):
        return f"its max_age of {keeping.max_age / _SECOND:g} s may have removed them"
    # max_msgs removes a message only when the stream has this many newer messages.
    if 0 < keeping.max_msgs < state.next - low:
        return f"its max_msgs of {keeping.max_msgs} may have removed them"
    if keeping.max_bytes:
        return f"its max_bytes of {keeping.max_bytes} may have removed them"
    return None


def not_before(low: int, state: StreamState, mark: Mark | None) -> str | None:
    """Return a time before which no message from sequence `low` on was stored.

    `mark` was the stream's last message at an earlier moment; `None` means that no mark was
    recorded. Return `None` if no such time is known.
    """
    if mark is not None and mark.seq < low:
        return mark.time
    return state.first_time if state.first <= low else None


def _is_younger(now: str | None, since: str | None, age: int) -> bool:
    if now is None or since is None:
        return False
    return Timestamp.parse(now).ns - Timestamp.parse(since).ns < age

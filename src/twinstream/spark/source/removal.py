"""Whether messages that a stream removed before they were read are lost, or were replaced.

Limits of a whole stream (``max_age``, ``max_msgs``, ``max_bytes``) remove the oldest messages, and
a purge removes whatever it is told to: what was not read by then is lost. Other messages go because
later ones took their place, or because the publisher limited their time: with
``max_msgs_per_subject``, rollups, or a time to live. That is not a loss. The first sequence moves
then only if the subject that has it is concerned.

The server does not say why a message went. So a removal from a stream that replaces messages counts
as a loss if one of its limits may have done it, as far as its state and configuration tell, or if
the stream is empty, as replacing always leaves the newest message. A purge that leaves something
cannot be told from a replacement.
"""

from __future__ import annotations

from typing import Final

from twinstream.models import Timestamp
from twinstream.spark.source.stream_mark import Mark
from twinstream.spark.source.stream_state import StreamState

__all__ = ["not_before", "why_lost"]

_SECOND: Final = 1_000_000_000


def why_lost(state: StreamState, low: int, since: str | None) -> str | None:
    """Return why removed messages from ``low`` on count as lost, `None` if they were replaced.

    No message from ``low`` on was stored before ``since`` (RFC 3339), if that is known.
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
    # To remove a message for their number, so many have to follow it.
    if 0 < keeping.max_msgs < state.next - low:
        return f"its max_msgs of {keeping.max_msgs} may have removed them"
    if keeping.max_bytes:
        return f"its max_bytes of {keeping.max_bytes} may have removed them"
    return None


def not_before(low: int, state: StreamState, mark: Mark | None) -> str | None:
    """Return a time before which no message from sequence ``low`` on was stored, if one is known.

    ``mark`` is the last message that the stream had at some earlier moment.
    """
    if mark is not None and mark.seq < low:
        return mark.time
    return state.first_time if state.first <= low else None


def _is_younger(now: str | None, since: str | None, age: int) -> bool:
    if now is None or since is None:
        return False
    return Timestamp.parse(now).ns - Timestamp.parse(since).ns < age

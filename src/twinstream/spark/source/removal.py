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

from typing import TYPE_CHECKING, Final

from attrs import frozen

from twinstream.models import DiscardPolicy, RetentionPolicy, Timestamp

if TYPE_CHECKING:
    from twinstream.models import StreamConfig
    from twinstream.spark.source.stream_mark import Mark
    from twinstream.spark.source.stream_state import StreamState

__all__ = ["Keeping", "not_before", "why_lost"]

_SECOND: Final = 1_000_000_000


@frozen(kw_only=True)
class Keeping:
    """What removes messages from a stream, by its configuration; 0 stands for no limit."""

    replaces: bool = False
    """Whether later messages replace earlier ones, or messages have a time to live of their own."""
    expires: bool = False
    """Whether messages may have a time to live of their own."""
    is_consumed: bool = False
    """Whether acknowledgements remove messages."""
    max_age: int = 0
    """Nanoseconds."""
    max_msgs: int = 0
    max_bytes: int = 0

    @classmethod
    def of(cls, config: StreamConfig) -> Keeping:
        """Read a configuration. A stream that refuses new messages removes none for its size."""
        makes_room = config.discard in (None, DiscardPolicy.OLD)
        expires = bool(config.allow_msg_ttl or config.subject_delete_marker_ttl)
        return cls(
            replaces=(config.max_msgs_per_subject or 0) > 0
            or bool(config.allow_rollup_hdrs)
            or expires,
            expires=expires,
            is_consumed=config.retention not in (None, RetentionPolicy.LIMITS),
            max_age=config.max_age.ns if config.max_age else 0,
            max_msgs=max(0, config.max_msgs or 0) if makes_room else 0,
            max_bytes=max(0, config.max_bytes or 0) if makes_room else 0,
        )


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

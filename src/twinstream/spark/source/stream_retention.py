"""Derive from a stream's configuration how its messages can be removed."""

from __future__ import annotations

from attrs import frozen

from twinstream.models import DiscardPolicy, RetentionPolicy, StreamConfig

__all__ = ["StreamRetention"]


@frozen(kw_only=True)
class StreamRetention:
    """The ways in which messages of a stream can be removed.

    If `max_age`, `max_msgs` or `max_bytes` is 0, that limit removes no messages.
    """

    replaces: bool = False
    """Whether later messages can replace earlier ones, or messages can have their own TTL."""
    expires: bool = False
    """Whether messages can have their own TTL."""
    is_consumed: bool = False
    """Whether acknowledgements remove messages."""
    max_age: int = 0
    """The maximum age of a message in nanoseconds; 0 for a bucket, see `of`."""
    max_msgs: int = 0
    max_bytes: int = 0

    @classmethod
    def of(cls, config: StreamConfig, *, is_bucket: bool = False) -> StreamRetention:
        """Return the ways in which messages of a stream with this configuration can be removed.

        With discard policy `new`, the limits `max_msgs` and `max_bytes` remove no messages. A
        bucket does not guarantee to keep a revision until it is read: its history, its TTL and
        purges may remove the revision. So the TTL of a bucket counts as `expires` and not as
        `max_age`.
        """
        makes_room = config.discard in (None, DiscardPolicy.OLD)
        expires = is_bucket or bool(config.allow_msg_ttl or config.subject_delete_marker_ttl)
        return cls(
            replaces=is_bucket
            or (config.max_msgs_per_subject or 0) > 0
            or bool(config.allow_rollup_hdrs)
            or expires,
            expires=expires,
            is_consumed=config.retention not in (None, RetentionPolicy.LIMITS),
            max_age=config.max_age.ns if config.max_age and not is_bucket else 0,
            max_msgs=max(0, config.max_msgs or 0) if makes_room else 0,
            max_bytes=max(0, config.max_bytes or 0) if makes_room else 0,
        )

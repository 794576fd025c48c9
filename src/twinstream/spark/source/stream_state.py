"""What planning knows of a stream: the bounds of what it holds, and which stream it is."""

from __future__ import annotations

from typing import TYPE_CHECKING

from attrs import field, frozen

from twinstream.errors import MessageNotFound, StreamNotFound
from twinstream.models import RetentionPolicy
from twinstream.spark.errors import OptionError
from twinstream.spark.source.stream_mark import Mark
from twinstream.spark.source.removal import Keeping

if TYPE_CHECKING:
    from twinstream.models import StreamInfo
    from js_sync import JetStream

__all__ = ["StreamState", "stored_at", "stream_state"]


@frozen
class StreamState:
    """A stream as its leader describes it.

    ``first`` is the first sequence that is there, ``next`` the one that the next message will get;
    they are equal when the stream is empty. ``created`` tells a stream from one of the same name
    that was made later.
    """

    name: str
    first: int
    next: int
    created: str
    messages: int = 0
    bytes: int = 0
    allow_direct: bool = False
    by_limits: bool = False
    """Whether limits alone decide what it keeps, whatever is consumed."""
    is_queue: bool = False
    """Whether it is a work queue, which takes no consumer that only reads."""
    mark: Mark | None = None
    """Its last message; None when it never had one."""
    keeping: Keeping = field(factory=Keeping)
    first_time: str | None = None
    """When the first message was stored (RFC 3339); None when there is none."""
    now: str | None = None
    """The leader's time when it answered (RFC 3339)."""

    @property
    def mean_size(self) -> float:
        """Mean bytes of a message, 0 for an empty stream."""
        return self.bytes / self.messages if self.messages else 0.0

    @classmethod
    def of(cls, name: str, info: StreamInfo) -> StreamState:
        """Read the server's answer."""
        state, config = info.state, info.config
        following = (state.last_seq or 0) + 1
        return cls(
            name,
            # A stream that never held a message says 0; a purged one says last + 1.
            max(state.first_seq or 0, 1),
            following,
            info.created.rfc3339(),
            messages=state.messages or 0,
            bytes=state.bytes or 0,
            allow_direct=bool(config.allow_direct),
            by_limits=config.retention in (None, RetentionPolicy.LIMITS),
            is_queue=config.retention == RetentionPolicy.WORKQUEUE,
            mark=Mark(following - 1, state.last_ts.rfc3339())
            if state.last_seq and state.last_ts
            else None,
            keeping=Keeping.of(config),
            first_time=state.first_ts.rfc3339() if state.messages and state.first_ts else None,
            now=info.ts.rfc3339() if info.ts else None,
        )


def stream_state(jet: JetStream, name: str) -> StreamState:
    """Ask the stream's leader. Raises `OptionError` when there is no such stream."""
    try:
        return StreamState.of(name, jet.bind_stream(name).info(confirmed=True))
    except StreamNotFound as error:
        raise OptionError("stream", f"there is no stream {name!r} ({error})") from error


def stored_at(jet: JetStream, stream: str, seq: int) -> str | None:
    """Ask the stream's leader when the message with a sequence was stored; None without one."""
    try:
        return jet.bind_stream(stream).get_message(seq).time.rfc3339()
    except MessageNotFound:
        return None

"""Request the state of a stream for planning: its first and next sequence, and its identity."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from attrs import field, frozen

from js_sync.read.origins import origins_of
from twinstream.core.kv.config import check_is_bucket
from twinstream.core.kv.names import KeySubjects
from twinstream.errors import MessageNotFound, NotABucket, StreamNotFound
from twinstream.lake.stream_mark import Mark
from twinstream.models import RetentionPolicy
from twinstream.spark.errors import OptionError
from twinstream.spark.source.bucket_options import BucketOptions
from twinstream.spark.source.stream_retention import StreamRetention

if TYPE_CHECKING:
    from js_sync import JetStream
    from twinstream.models import StreamConfig, StreamInfo

__all__ = ["StreamState", "stored_at", "stream_state"]


@frozen
class StreamState:
    """The state of a stream as its leader reports it.

    `first` is the sequence of the first message, and `next` is the sequence that the next
    message will have. They are equal if the stream is empty. `created` is the creation time
    (RFC 3339). It distinguishes the stream from a later stream of the same name.
    """

    name: str
    first: int
    next: int
    created: str
    messages: int = 0
    bytes: int = 0
    allow_direct: bool = False
    by_limits: bool = False
    """Whether the retention policy is `limits`, so that acknowledgements remove no messages."""
    is_queue: bool = False
    """Whether the stream is a work queue, whose consumers must acknowledge messages."""
    mark: Mark | None = None
    """The last message of the stream, or `None` if the stream never had a message."""
    keeping: StreamRetention = field(factory=StreamRetention)
    first_time: str | None = None
    """When the first message was stored (RFC 3339), or `None` for an empty stream."""
    now: str | None = None
    """The leader's clock when it responded (RFC 3339), or `None` if the response has no time."""
    key_prefix: str = ""
    """The part of a bucket's stored subjects that precedes the key. It is empty for reads of
    streams."""

    @property
    def mean_size(self) -> float:
        """The mean size of a message in bytes, 0 for an empty stream."""
        return self.bytes / self.messages if self.messages else 0.0

    @classmethod
    def of(
        cls,
        name: str,
        info: StreamInfo,
        bucket: BucketOptions | None = None,
        origins: Sequence[StreamConfig] = (),
    ) -> StreamState:
        """Return the state that the server's response `info` contains.

        `origins` are the streams that a mirror copies. Raises `OptionError` if `bucket` is given
        and the stream does not belong to a bucket.
        """
        key_prefix = ""
        if bucket is not None:
            try:
                check_is_bucket(info.config)
                key_prefix = KeySubjects.of(info.config, "", origins).stored
            except NotABucket as error:
                raise OptionError("bucket", f"{error}; read it by the option stream") from error
        state, config = info.state, info.config
        last_seq = state.last_seq or 0
        mark = Mark(last_seq, state.last_ts.rfc3339()) if last_seq and state.last_ts else None
        first_time = state.first_ts.rfc3339() if state.messages and state.first_ts else None
        return cls(
            name,
            # The server reports 0 for a stream that never had a message. For a stream that was
            # emptied, it reports the last sequence + 1.
            max(state.first_seq or 0, 1),
            last_seq + 1,
            info.created.rfc3339(),
            messages=state.messages or 0,
            bytes=state.bytes or 0,
            allow_direct=bool(config.allow_direct),
            by_limits=config.retention in (None, RetentionPolicy.LIMITS),
            is_queue=config.retention == RetentionPolicy.WORKQUEUE,
            mark=mark,
            keeping=StreamRetention.of(config, is_bucket=bucket is not None),
            first_time=first_time,
            now=info.ts.rfc3339() if info.ts else None,
            key_prefix=key_prefix,
        )


def stream_state(jet: JetStream, name: str, bucket: BucketOptions | None = None) -> StreamState:
    """Request a stream's state from its leader, and return it.

    Raises `OptionError` if there is no such stream, or if `bucket` is given and the stream does
    not belong to a bucket.
    """
    try:
        info = jet.bind_stream(name).info(confirmed=True)
        origins: Sequence[StreamConfig] = ()
        if bucket is not None:
            # A mirror of a mirror stores the subjects of the first bucket.
            origins = origins_of(jet._api, info.config, jet._api.deadline())
        return StreamState.of(name, info, bucket, origins)
    except StreamNotFound as error:
        if bucket is not None:
            raise bucket.missing(error) from error
        raise OptionError("stream", f"there is no stream {name!r} ({error})") from error


def stored_at(jet: JetStream, stream: str, seq: int) -> str | None:
    """Request from the leader when a message was stored, and return the time (RFC 3339).

    Return `None` if the stream has no message with this sequence.
    """
    try:
        return jet.bind_stream(stream).get_message(seq).time.rfc3339()
    except MessageNotFound:
        return None

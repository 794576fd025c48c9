"""Validate the arguments of reads of a stream, and choose how to read it."""

from __future__ import annotations

from collections.abc import Iterable
from datetime import datetime
from typing import Final, Literal, TypeAlias

from attrs import frozen

from twinstream.core.arguments.check_arguments import check_whole
from twinstream.core.deadline import Seconds, seconds
from twinstream.core.wire.request_times import comparable
from twinstream.core.wire.selection import subject_filters
from twinstream.errors import BadArgument, Unsupported
from twinstream.models import RetentionPolicy, StreamConfig, Timestamp

__all__ = [
    "ReadRequest",
    "SnapshotRequest",
    "Via",
    "choose",
    "read_request",
    "snapshot_request",
]

Via: TypeAlias = Literal["direct", "consumer", "leader"]
"""How messages are read: direct gets, an ephemeral consumer, or one by one from the leader."""

DIRECT_SINCE: Final = (2, 11, 0)
"""First server version with direct gets of many messages at once."""


@frozen(kw_only=True)
class ReadRequest:
    """The validated arguments of a read.

    `start` is the first sequence of the range. If `start` and `start_time` are None, the range
    begins at the first message of the stream. `end` is the sequence after the range. If `end` and
    `end_time` are None, the range ends at the current end of the stream.
    """

    start: int | None = None
    end: int | None = None
    start_time: Timestamp | None = None
    end_time: Timestamp | None = None
    subjects: tuple[str, ...] = ()
    via: Via | None = None
    page_messages: int
    page_bytes: int
    timeout: float = 120.0


@frozen(kw_only=True)
class SnapshotRequest:
    """The validated arguments of a snapshot.

    If `at_seq` and `at_time` are None, the snapshot is of the current state.
    """

    subjects: tuple[str, ...] = ()
    at_seq: int | None = None
    at_time: Timestamp | None = None
    timeout: float = 120.0


def snapshot_request(
    subjects: str | Iterable[str] | None,
    at_seq: int | None,
    at_time: datetime | None,
    idle_timeout: Seconds,
) -> SnapshotRequest:
    """Return the validated arguments of a snapshot. Raises `BadArgument` for an invalid one."""
    if at_seq is not None and at_time is not None:
        raise BadArgument("pass at_seq or at_time, not both")
    return SnapshotRequest(
        subjects=subject_filters(subjects),
        at_seq=_at_least_one(at_seq, "at_seq"),
        at_time=_moment(at_time, "at_time"),
        timeout=seconds(idle_timeout, "idle_timeout"),
    )


def read_request(
    *,
    start: int | None,
    end: int | None,
    start_time: datetime | None,
    end_time: datetime | None,
    subjects: str | Iterable[str] | None,
    via: Via | None,
    page_messages: int,
    page_bytes: int,
    idle_timeout: Seconds,
) -> ReadRequest:
    """Return the validated arguments of a read. Raises `BadArgument` for an invalid one."""
    if start is not None and start_time is not None:
        raise BadArgument("pass start or start_time, not both")
    if end is not None and end_time is not None:
        raise BadArgument("pass end or end_time, not both")
    if via not in {None, "direct", "consumer", "leader"}:
        raise BadArgument(f"via must be direct, consumer or leader, got {via!r}")
    return ReadRequest(
        start=_at_least_one(start, "start"),
        end=_at_least_one(end, "end"),
        start_time=_moment(start_time, "start_time"),
        end_time=_moment(end_time, "end_time"),
        subjects=subject_filters(subjects),
        via=via,
        page_messages=check_whole(page_messages, "page_messages"),
        page_bytes=check_whole(page_bytes, "page_bytes"),
        timeout=seconds(idle_timeout, "idle_timeout"),
    )


def _at_least_one(value: int | None, name: str) -> int | None:
    return None if value is None else check_whole(value, name)


def _moment(value: datetime | None, name: str) -> Timestamp | None:
    return None if value is None else comparable(value, name)


def choose(via: Via | None, filters: int, config: StreamConfig, version: tuple[int, ...]) -> Via:
    """Return how to read a stream with the given number of filters: `via`, unless it is None.

    If `via` is None, a direct get is preferred, because it leaves no state on the server. But its
    request has only one filter, so a consumer is preferred for several filters. On a work queue or
    an interest stream, a consumer would affect which messages the stream keeps. There the choice is
    a direct get or, if the stream does not allow it, the leader.

    Raises `BadArgument` if the stream does not allow `via`, and `Unsupported` if the server does
    not.
    """
    new_enough = version >= DIRECT_SINCE
    if via == "direct":
        if not new_enough:
            raise Unsupported("reading in batches by direct get needs server 2.11.0")
        if not config.allow_direct:
            raise BadArgument(f"stream {config.name} has no allow_direct; omit `via`")
    keeps_acknowledged = config.retention in (None, RetentionPolicy.LIMITS)
    if via == "consumer" and config.retention == RetentionPolicy.WORKQUEUE:
        raise BadArgument(
            f"stream {config.name} is a work queue, which a reading consumer would disturb;"
            " omit `via`"
        )
    if via is not None:
        return via
    allows_direct = new_enough and bool(config.allow_direct)
    if allows_direct and (filters <= 1 or not keeps_acknowledged):
        return "direct"
    return "consumer" if keeps_acknowledged else "leader"

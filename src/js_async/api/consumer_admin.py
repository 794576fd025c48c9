"""API calls for one consumer: info, delete, pause, reset, step down, unpin."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, Final

import twinstream.models
from js_async.api import priority_groups
from js_async.api.api import Api
from js_async.runtime.concurrency import Work, sleep
from twinstream.core.deadline import Deadline
from twinstream.core.wire.request_times import comparable
from twinstream.errors import (
    BadArgument,
    ConsumerDeleted,
    ConsumerNotFound,
    StreamNotFound,
)

if TYPE_CHECKING:
    from twinstream.models import ConsumerInfo, ConsumerPauseResponse

__all__ = [
    "delete",
    "delete_unconfirmed",
    "free_push",
    "gone",
    "info",
    "pause",
    "pause_end",
    "require_there",
    "reset",
    "step_down",
    "unpin",
]

# The pause before a deletion is repeated that may have overtaken the creation (seconds).
_OVERTAKEN: Final = 0.2

# The timeout of the check whether a consumer exists (seconds). It is short, because a consumer
# without a leader does not respond, and during the check an iterator does not process messages.
_LOOK: Final = 1.0
# The longest time that a server needs to release a push consumer after an UNSUB (seconds).
_RELEASE: Final = 1.0


async def info(api: Api, stream: str, name: str, deadline: Deadline | None = None) -> ConsumerInfo:
    """Return the configuration and state of the consumer. Raises `ConsumerNotFound`."""
    subject = api.subjects.consumer("INFO", stream, name)
    return await api.call(subject, None, twinstream.models.ConsumerInfoResponse, deadline)


async def free_push(api: Api, stream: str, name: str) -> ConsumerInfo:
    """Return the info of a push consumer to which a subscription may bind.

    Raises `BadArgument` if the consumer has no deliver group and another subscription is still
    bound to the consumer after `_RELEASE` seconds.
    """
    released = Deadline.after(_RELEASE)
    while True:
        found = await info(api, stream, name)
        if not found.push_bound or found.config is None or found.config.deliver_group:
            return found
        if released.expired():
            raise BadArgument(
                f"{stream}/{name}: another subscription is bound to this push consumer, and would"
                " get every message, too. Close that one, or use a deliver_group to share messages"
            )
        # The bound subscription may be closed already, and the server notices this with a delay.
        await sleep(_RELEASE / 10)


async def gone(api: Api, stream: str, name: str) -> ConsumerDeleted | None:
    """Return a `ConsumerDeleted` error if the consumer or its stream does not exist, else None.

    If the request for the consumer's info fails in another way, the call raises that error.
    """
    try:
        await info(api, stream, name, Deadline.after(_LOOK))
    except (ConsumerNotFound, StreamNotFound) as error:
        return ConsumerDeleted(f"{stream}/{name}: {error.description}")
    return None


async def require_there(api: Api, stream: str, name: str) -> None:
    """Raise `ConsumerDeleted` if the consumer or its stream does not exist.

    If the request for the consumer's info fails in another way, the call raises that error.
    """
    found = await gone(api, stream, name)
    if found is not None:
        raise found


async def delete(api: Api, stream: str, name: str, deadline: Deadline | None = None) -> None:
    """Delete the consumer. Raises `ConsumerNotFound`."""
    subject = api.subjects.consumer("DELETE", stream, name)
    await api.call(subject, None, twinstream.models.ConsumerDeleteResponse, deadline)


async def delete_unconfirmed(delete: Work) -> None:
    """Delete a consumer whose creation was interrupted, so that it may exist or not.

    `delete` returns whether the server has confirmed a deletion. The server may process the first
    deletion before the creation; then the second one deletes the consumer.
    """
    if not await delete():
        await sleep(_OVERTAKEN)
        await delete()


async def pause(
    api: Api, stream: str, name: str, until: datetime | None, deadline: Deadline
) -> ConsumerPauseResponse:
    """Pause the consumer until the server's clock reaches `until`. None resumes the consumer.

    Raises `BadArgument` if `until` is past by the server's clock.
    """
    api.require((2, 11, 0), "pausing a consumer")
    body = {"pause_until": until.isoformat()} if until is not None else None
    subject = api.subjects.consumer("PAUSE", stream, name)
    answer = await api.call(subject, body, twinstream.models.ConsumerPauseResponse, deadline)
    if until is not None and not answer.paused:
        raise BadArgument(
            f"{stream}/{name} is not paused: {until.isoformat()} is past by the server's clock"
        )
    return answer


def pause_end(duration: float | None, until: datetime | None) -> datetime:
    """Return the time at which a pause ends: `until`, or `duration` seconds from now.

    Raises `BadArgument` if both arguments or none are given, if `until` has no time zone, or if
    `duration` is not positive.
    """
    if (duration is None) == (until is None):
        raise BadArgument("give either the duration of the pause or its end (until)")
    if until is not None:
        comparable(until, "until")
        return until
    if not duration or duration <= 0:
        raise BadArgument(f"duration must be above 0 seconds, got {duration:g}")
    return datetime.now(UTC) + timedelta(seconds=duration)


async def step_down(
    api: Api,
    stream: str,
    name: str,
    preferred: str | None,
    cluster: str | None,
    tags: Sequence[str],
    deadline: Deadline,
) -> None:
    """Request that the consumer's leader steps down. See `priority_groups.step_down`."""
    subject = api.subjects.consumer("LEADER.STEPDOWN", stream, name)
    kind = twinstream.models.ConsumerLeaderStepdownResponse
    await priority_groups.step_down(api, subject, kind, preferred, cluster, tags, deadline)


async def reset(
    api: Api, stream: str, name: str, seq: int | None, deadline: Deadline | None = None
) -> ConsumerInfo:
    """Restart the consumer at stream sequence `seq`, and return its info.

    If `seq` is None, the consumer restarts just above its ack floor.
    """
    if seq is not None and (isinstance(seq, bool) or not isinstance(seq, int) or seq < 1):
        # The server treats 0 as missing. So with 0, the consumer would restart above its ack floor
        # instead of at the first message.
        raise BadArgument(
            f"seq must be a whole number from 1 up, got {seq!r}; leave it out to start just above"
            " the ack floor"
        )
    api.require((2, 14, 0), "resetting a consumer")
    subject = api.subjects.consumer("RESET", stream, name)
    body = {"seq": seq} if seq is not None else None
    return await api.call(subject, body, twinstream.models.ConsumerResetResponse, deadline)


async def unpin(api: Api, stream: str, name: str, group: str, deadline: Deadline) -> None:
    """Unpin the client that is pinned in a priority group, so that the server pins another."""
    api.require((2, 11, 0), "unpinning a client")
    subject = api.subjects.consumer("UNPIN", stream, name)
    await api.call(subject, {"group": group}, twinstream.models.ConsumerUnpinResponse, deadline)

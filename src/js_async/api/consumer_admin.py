"""The calls that change or show one consumer on the server."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, Final

import twinstream.models
from js_async.api import priority_groups as _groups
from js_async.api.api import Api
from js_async.runtime.concurrency import sleep
from twinstream.core.deadline import Deadline
from twinstream.errors import BadArgument, ConsumerDeleted, ConsumerNotFound, StreamNotFound

if TYPE_CHECKING:
    from twinstream.models import ConsumerInfo, ConsumerPauseResponse

__all__ = [
    "delete",
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

# A group without a leader does not answer at all, and messages wait meanwhile (seconds).
_LOOK: Final = 1.0
# Longer than a server needs to release a push consumer after an UNSUB (seconds).
_RELEASE: Final = 1.0


async def info(api: Api, stream: str, name: str, deadline: Deadline | None = None) -> ConsumerInfo:
    """Ask for configuration and state; by default within the time of a call."""
    subject = api.subjects.consumer("INFO", stream, name)
    return await api.call(subject, None, twinstream.models.ConsumerInfoResponse, deadline)


async def free_push(api: Api, stream: str, name: str) -> ConsumerInfo:
    """Return the info of a push consumer that a subscription may bind to.

    Raises `BadArgument` where it has no group and another subscription is bound to it.
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
        # The server learns of a subscription that was closed a moment later.
        await sleep(_RELEASE / 10)


async def gone(api: Api, stream: str, name: str) -> ConsumerDeleted | None:
    """Ask the server; return the error to raise when it says that there is no such consumer.

    Raises what the question meets otherwise: nobody can tell then.
    """
    try:
        await info(api, stream, name, Deadline.after(_LOOK))
    except (ConsumerNotFound, StreamNotFound) as error:
        return ConsumerDeleted(f"{stream}/{name}: {error.description}")
    return None


async def require_there(api: Api, stream: str, name: str) -> None:
    """Raise `ConsumerDeleted` when the server says that there is no such consumer."""
    found = await gone(api, stream, name)
    if found is not None:
        raise found


async def delete(api: Api, stream: str, name: str, deadline: Deadline | None = None) -> None:
    """Delete the consumer."""
    subject = api.subjects.consumer("DELETE", stream, name)
    await api.call(subject, None, twinstream.models.ConsumerDeleteResponse, deadline)


async def pause(
    api: Api, stream: str, name: str, until: datetime | None, deadline: Deadline
) -> ConsumerPauseResponse:
    """Pause up to a moment of the server's clock, or resume."""
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
    """Return the end of a pause that is given in one of the two ways."""
    if (duration is None) == (until is None):
        raise BadArgument("give the duration of the pause or its end (until), one of them")
    if until is not None:
        if until.tzinfo is None:
            raise BadArgument(f"until={until} has no time zone: whose clock is that?")
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
    """Ask the consumer's leader to hand over."""
    subject = api.subjects.consumer("LEADER.STEPDOWN", stream, name)
    kind = twinstream.models.ConsumerLeaderStepdownResponse
    await _groups.step_down(api, subject, kind, preferred, cluster, tags, deadline)


async def reset(
    api: Api, stream: str, name: str, seq: int | None, deadline: Deadline | None = None
) -> ConsumerInfo:
    """Start again from a sequence, or above the acknowledgement floor."""
    if seq is not None and (isinstance(seq, bool) or not isinstance(seq, int) or seq < 1):
        # The server takes 0 for none: it would start above the floor, not at the first message.
        raise BadArgument(
            f"seq must be a whole number from 1 up, got {seq!r}; leave it out to start just above"
            " the acknowledgement floor"
        )
    api.require((2, 14, 0), "resetting a consumer")
    subject = api.subjects.consumer("RESET", stream, name)
    body = {"seq": seq} if seq is not None else None
    return await api.call(subject, body, twinstream.models.ConsumerResetResponse, deadline)


async def unpin(api: Api, stream: str, name: str, group: str, deadline: Deadline) -> None:
    """Take the pin of a group from its client."""
    api.require((2, 11, 0), "unpinning a client")
    subject = api.subjects.consumer("UNPIN", stream, name)
    await api.call(subject, {"group": group}, twinstream.models.ConsumerUnpinResponse, deadline)

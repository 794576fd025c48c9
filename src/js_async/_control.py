"""The calls that change or show one consumer on the server."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Any

from js_async._api import Api
from js_core.deadline import Deadline
from js_core.errors import BadArgument, ConsumerDeleted, ConsumerNotFound, StreamNotFound
from js_models import (
    ConsumerDeleteResponse,
    ConsumerInfo,
    ConsumerInfoResponse,
    ConsumerPauseResponse,
    ConsumerResetResponse,
    ConsumerUnpinResponse,
)

__all__ = ["delete", "info", "pause", "require_there", "reset", "unpin"]


async def info(api: Api, stream: str, name: str) -> ConsumerInfo:
    """Ask for configuration and state."""
    subject = api.subjects.consumer("INFO", stream, name)
    return await api.call(subject, None, ConsumerInfoResponse)


async def require_there(api: Api, stream: str, name: str) -> None:
    """Raise `ConsumerDeleted` when the server says that there is no such consumer."""
    try:
        subject = api.subjects.consumer("INFO", stream, name)
        await api.call(subject, None, ConsumerInfoResponse, Deadline.after(1.0))
    except (ConsumerNotFound, StreamNotFound) as error:
        raise ConsumerDeleted(f"{stream}/{name}: {error.description}") from error


async def delete(api: Api, stream: str, name: str) -> None:
    """Delete the consumer."""
    subject = api.subjects.consumer("DELETE", stream, name)
    await api.call(subject, None, ConsumerDeleteResponse)


async def pause(api: Api, stream: str, name: str, duration: float | None) -> None:
    """Pause for a duration in seconds, or resume."""
    api.require((2, 11, 0), "pausing a consumer")
    body: dict[str, Any] | None = None
    if duration is not None:
        if duration <= 0:
            raise BadArgument(f"duration must be above 0 seconds, got {duration:g}")
        until = datetime.now(UTC) + timedelta(seconds=duration)
        body = {"pause_until": until.isoformat()}
    subject = api.subjects.consumer("PAUSE", stream, name)
    await api.call(subject, body, ConsumerPauseResponse)


async def reset(api: Api, stream: str, name: str, seq: int | None) -> ConsumerInfo:
    """Start again from a sequence, or above the acknowledgement floor."""
    api.require((2, 14, 0), "resetting a consumer")
    subject = api.subjects.consumer("RESET", stream, name)
    body = {"seq": seq} if seq is not None else None
    return await api.call(subject, body, ConsumerResetResponse)


async def unpin(api: Api, stream: str, name: str, group: str) -> None:
    """Take the pin of a group from its client."""
    api.require((2, 11, 0), "unpinning a client")
    subject = api.subjects.consumer("UNPIN", stream, name)
    await api.call(subject, {"group": group}, ConsumerUnpinResponse)

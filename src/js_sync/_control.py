# Generated from src/js_async/_control.py by codegen/twin.py. Edit that file instead.
"""The calls that change or show one consumer on the server."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Any

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
from js_sync._api import Api

__all__ = ["delete", "info", "pause", "require_there", "reset", "unpin"]


def info(api: Api, stream: str, name: str) -> ConsumerInfo:
    """Ask for configuration and state."""
    subject = api.subjects.consumer("INFO", stream, name)
    return api.call(subject, None, ConsumerInfoResponse)


def require_there(api: Api, stream: str, name: str) -> None:
    """Raise `ConsumerDeleted` when the server says that there is no such consumer."""
    try:
        subject = api.subjects.consumer("INFO", stream, name)
        api.call(subject, None, ConsumerInfoResponse, Deadline.after(1.0))
    except (ConsumerNotFound, StreamNotFound) as error:
        raise ConsumerDeleted(f"{stream}/{name}: {error.description}") from error


def delete(api: Api, stream: str, name: str) -> None:
    """Delete the consumer."""
    subject = api.subjects.consumer("DELETE", stream, name)
    api.call(subject, None, ConsumerDeleteResponse)


def pause(api: Api, stream: str, name: str, duration: float | None) -> None:
    """Pause for a duration in seconds, or resume."""
    api.require((2, 11, 0), "pausing a consumer")
    body: dict[str, Any] | None = None
    if duration is not None:
        if duration <= 0:
            raise BadArgument(f"duration must be above 0 seconds, got {duration:g}")
        until = datetime.now(UTC) + timedelta(seconds=duration)
        body = {"pause_until": until.isoformat()}
    subject = api.subjects.consumer("PAUSE", stream, name)
    api.call(subject, body, ConsumerPauseResponse)


def reset(api: Api, stream: str, name: str, seq: int | None) -> ConsumerInfo:
    """Start again from a sequence, or above the acknowledgement floor."""
    api.require((2, 14, 0), "resetting a consumer")
    subject = api.subjects.consumer("RESET", stream, name)
    body = {"seq": seq} if seq is not None else None
    return api.call(subject, body, ConsumerResetResponse)


def unpin(api: Api, stream: str, name: str, group: str) -> None:
    """Take the pin of a group from its client."""
    api.require((2, 11, 0), "unpinning a client")
    subject = api.subjects.consumer("UNPIN", stream, name)
    api.call(subject, {"group": group}, ConsumerUnpinResponse)

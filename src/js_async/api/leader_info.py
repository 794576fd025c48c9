"""Ask for a stream's state until its leader answers; others may lack acknowledged messages."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, Final

from js_async.api.api import Api
from js_async.runtime.concurrency import sleep
from twinstream.core.deadline import Deadline
from twinstream.errors import RequestTimeout
from twinstream.core.api.leadership import doubt_of_leader

if TYPE_CHECKING:
    from twinstream.models import StreamInfoResponse

__all__ = ["confirmed_info"]

# Between two questions, in seconds: an election takes some tenths, or some seconds.
_FIRST_PAUSE: Final = 0.01
_LONGEST_PAUSE: Final = 0.25


async def confirmed_info(
    api: Api,
    stream: str,
    deadline: Deadline | None = None,
    body: Mapping[str, Any] | None = None,
) -> StreamInfoResponse:
    """Return what the leader says of a stream; by default within the time of a call.

    Raises `RequestTimeout` when no answer came that is the leader's for sure, and what `Api.call`
    raises.
    """
    deadline = deadline or api.deadline()
    pause = _FIRST_PAUSE
    while True:
        info = await api.stream_info(stream, deadline, body)
        doubt = doubt_of_leader(info.cluster)
        if not doubt:
            return info
        if deadline.remaining() <= pause:
            raise RequestTimeout(f"stream {stream}: no answer of its leader in time; last: {doubt}")
        await sleep(pause)
        pause = min(pause * 2, _LONGEST_PAUSE)

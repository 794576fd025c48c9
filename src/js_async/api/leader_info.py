"""The stream info as reported by the stream's leader. See `server_faults.final_reply`."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, Final

from js_async.api.api import Api
from js_async.runtime.concurrency import sleep
from twinstream.core.deadline import Backoff, Deadline
from twinstream.core.server_faults.final_reply import doubt_of_leader
from twinstream.errors import RequestTimeout

if TYPE_CHECKING:
    from twinstream.models import StreamInfoResponse

__all__ = ["confirmed_info", "has_message"]

# The pauses between two requests in seconds. An election takes from tenths of a second to seconds.
_BACKOFF: Final = Backoff(0.01, 0.25)


async def confirmed_info(
    api: Api,
    stream: str,
    deadline: Deadline | None = None,
    body: Mapping[str, Any] | None = None,
) -> StreamInfoResponse:
    """Request a stream's info until a response is certainly from the stream's leader.

    Returns that response. `body` is the body of the request. The default deadline is that of
    `Api.deadline`.

    Raises `RequestTimeout` if the leader does not respond before the deadline, `StreamNotFound` if
    the stream does not exist, or another error as `Api.call` does.
    """
    deadline = deadline or api.deadline()
    doubt = ""
    for pause in _BACKOFF:
        try:
            info = await api.stream_info(stream, deadline, body)
        except RequestTimeout as error:
            if doubt:
                raise _late(stream, doubt) from error
            raise
        doubt = doubt_of_leader(info.cluster)
        if not doubt:
            return info
        if deadline.remaining() <= pause:
            raise _late(stream, doubt)
        await sleep(pause)
    raise AssertionError("the pauses have no end")


def _late(stream: str, doubt: str) -> RequestTimeout:
    return RequestTimeout(f"stream {stream}: no answer of its leader in time; last: {doubt}")


async def has_message(api: Api, stream: str, subject: str, deadline: Deadline) -> bool:
    """Return whether the leader of a stream has a message of a subject without wildcards.

    Raises as `confirmed_info` does.
    """
    info = await confirmed_info(api, stream, deadline, {"subjects_filter": subject})
    return subject in (info.state.subjects or {})

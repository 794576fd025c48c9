"""The streams that a mirror copies, directly or through other mirrors."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from js_async.api.api import Api
from js_async.read.get_message import get_message
from twinstream.core.deadline import Deadline, monotonic
from twinstream.core.read.mirrored import copies_of
from twinstream.core.wire.subjects import ApiSubjects
from twinstream.errors import ConnectionClosed, MessageNotFound, NotABucket, TwinstreamError
from twinstream.models import StreamConfig, StreamInfo, StreamSource

__all__ = ["check_visible", "origins_of"]

# Maximum number of streams from a mirror to its origin. Mirrors may form a circle.
_MOST: Final = 16


async def origins_of(api: Api, config: StreamConfig, deadline: Deadline) -> list[StreamConfig]:
    """Return the configurations of the streams that a mirror copies, the nearest one first.

    The last of them is no mirror, unless a stream cannot be reached, for example in a domain that
    is not connected. Then the list ends before this stream. Takes at most half of the time until
    the deadline.
    """
    within = deadline.earlier(monotonic() + deadline.remaining() / 2)
    found: list[StreamConfig] = []
    while config.mirror is not None and len(found) < _MOST:
        api = _api_of(api, config.mirror)
        try:
            config = (await api.stream_info(config.mirror.name or "", within)).config
        except ConnectionClosed:
            raise
        except TwinstreamError:
            break
        found.append(config)
    return found


async def check_visible(
    api: Api,
    info: StreamInfo,
    origins: Sequence[StreamConfig],
    stored: str,
    what: str,
    deadline: Deadline,
) -> None:
    """Raise `NotABucket` if a mirror or a copy would look empty although its origin is not.

    `info` is that of the bucket or store `what`, whose messages are read by the prefix `stored`.
    `origins` are those of `origins_of`.
    """
    config, messages = info.config, info.state.messages
    if config.mirror is not None:
        nearest = (config, *origins)[-1]
        if nearest.mirror is None or not messages:
            return
        subject = await _stored_subject(api, info, None, deadline)
        if subject is not None and not subject.startswith(stored):
            raise NotABucket(
                f"{what} is a mirror, and its origin {nearest.mirror.name} does not answer; its"
                f" messages have subjects such as {subject}, not {stored}>: open it when its origin"
                " answers, or read it as a stream"
            )
        return
    if not messages:
        for source in config.sources or ():
            streams = await origins_of(api, StreamConfig(mirror=source), deadline)
            if streams and streams[0].mirror is not None and not copies_of(source, streams):
                raise NotABucket(
                    f"{what} copies nothing: its source {source.name} is a mirror of"
                    f" {streams[0].mirror.name}, and stores the subjects of its origin; change the"
                    " src of the source's subject transform to these subjects"
                )
        return
    subject = await _stored_subject(api, info, f"{stored}>", deadline)
    if subject is None and await _stored_subject(api, info, None, deadline) is not None:
        raise NotABucket(
            f"{what} shows none of its {messages} messages: its sources have no subject transforms"
            f" to {stored}>, so their messages have other subjects"
        )


def _api_of(api: Api, source: StreamSource) -> Api:
    prefix = None if source.external is None else source.external.api
    return Api(api.transport, ApiSubjects(prefix), api.timeout) if prefix else api


async def _stored_subject(
    api: Api, info: StreamInfo, pattern: str | None, deadline: Deadline
) -> str | None:
    """Return the subject of the last stored message that matches a pattern.

    Without a pattern, returns that of the first message. Returns None if there is no message.
    """
    first = {"seq": info.state.first_seq}
    request = first if pattern is None else {"last_by_subj": pattern}
    try:
        found = await get_message(
            api,
            info.config.name or "",
            request,
            direct=False,
            headers=False,
            timeout=deadline.remaining(),
        )
    except MessageNotFound:
        return None
    return found.subject

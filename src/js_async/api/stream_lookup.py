"""The lookup of streams by subject."""

from __future__ import annotations

import twinstream.models
from js_async.api.api import Api
from js_async.runtime.concurrency import sleep
from twinstream.core.deadline import Deadline
from twinstream.core.server_faults.delays import SPREADING_NAMES
from twinstream.core.wire.subjects import check_filter
from twinstream.errors import BadArgument, StreamNotFound
from twinstream.models.error_codes import STREAM_NOT_FOUND

__all__ = ["holding", "name_by_subject"]


async def holding(api: Api, subject: str, deadline: Deadline | None = None) -> list[str]:
    """Return the names of the streams with a subject that matches `subject`, one page at most.

    If there is none, the lookup is repeated once after `SPREADING_NAMES` seconds.
    """
    target = api.subjects.streams("NAMES")
    body = {"subject": subject}
    answer = await api.call(target, body, twinstream.models.StreamNamesResponse, deadline)
    if not answer.streams:
        await sleep(SPREADING_NAMES)
        answer = await api.call(target, body, twinstream.models.StreamNamesResponse, deadline)
    return answer.streams or []


async def name_by_subject(api: Api, subject: str, deadline: Deadline | None = None) -> str:
    """Return the name of the only stream with a subject that matches `subject`.

    Raises `StreamNotFound` if there is no such stream, and `BadArgument` if there are several.
    """
    check_filter(subject)
    names = await holding(api, subject, deadline)
    if len(names) > 1:
        raise BadArgument(f"{subject} matches several streams: {', '.join(names[:10])}")
    if not names:
        text = f"no stream has the subject {subject}"
        target = api.subjects.streams("NAMES")
        raise StreamNotFound(text, code=404, err_code=STREAM_NOT_FOUND, subject=target)
    return names[0]

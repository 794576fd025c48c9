"""Find the streams with a given subject."""

from __future__ import annotations

from typing import Final

import twinstream.models
from js_async.api.api import Api
from js_async.runtime.concurrency import sleep
from twinstream.core.deadline import Deadline
from twinstream.core.wire.subjects import check_filter
from twinstream.errors import BadArgument, StreamNotFound
from twinstream.models.error_codes import STREAM_NOT_FOUND

__all__ = ["holding", "name_by_subject"]

# A stream's own leader confirms its creation. The leader of the cluster, which answers this lookup,
# sometimes learns of it some milliseconds later (seen with servers 2.12 and 2.14; seconds).
_HEARS_IN: Final = 0.25


async def holding(api: Api, subject: str, deadline: Deadline | None = None) -> list[str]:
    """Return one page of names of streams with a subject; an empty result is checked twice."""
    target = api.subjects.streams("NAMES")
    body = {"subject": subject}
    answer = await api.call(target, body, twinstream.models.StreamNamesResponse, deadline)
    if not answer.streams:
        await sleep(_HEARS_IN)
        answer = await api.call(target, body, twinstream.models.StreamNamesResponse, deadline)
    return answer.streams or []


async def name_by_subject(api: Api, subject: str, deadline: Deadline | None = None) -> str:
    """Return the name of the one stream with a subject."""
    check_filter(subject)
    names = await holding(api, subject, deadline)
    if len(names) > 1:
        raise BadArgument(f"{subject} matches several streams: {', '.join(names[:10])}")
    if not names:
        text = f"no stream has the subject {subject}"
        target = api.subjects.streams("NAMES")
        raise StreamNotFound(text, code=404, err_code=STREAM_NOT_FOUND, subject=target)
    return names[0]

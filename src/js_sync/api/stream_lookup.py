# Generated from src/js_async/api/stream_lookup.py by codegen/twin.py. Edit that file instead.
"""Which streams hold a subject."""

from __future__ import annotations

from typing import Final

import twinstream.models
from twinstream.core.deadline import Deadline
from twinstream.errors import BadArgument, StreamNotFound
from twinstream.core.wire.subjects import check_filter
from twinstream.models.error_codes import STREAM_NOT_FOUND
from js_sync.api.api import Api
from js_sync.runtime.concurrency import sleep

__all__ = ["holding", "name_by_subject"]

# A stream's own leader answers its creation. The leader of the cluster, who is asked here, hears of
# it some milliseconds later at times (seen of servers 2.12 and 2.14; seconds).
_HEARS_IN: Final = 0.25


def holding(api: Api, subject: str, deadline: Deadline | None = None) -> list[str]:
    """Return the names of streams that hold a subject, a page of them; none is asked twice for."""
    target = api.subjects.streams("NAMES")
    body = {"subject": subject}
    answer = api.call(target, body, twinstream.models.StreamNamesResponse, deadline)
    if not answer.streams:
        sleep(_HEARS_IN)
        answer = api.call(target, body, twinstream.models.StreamNamesResponse, deadline)
    return answer.streams or []


def name_by_subject(api: Api, subject: str, deadline: Deadline | None = None) -> str:
    """Return the name of the one stream that holds a subject."""
    check_filter(subject)
    names = holding(api, subject, deadline)
    if len(names) > 1:
        raise BadArgument(f"{subject} finds several streams: {', '.join(names[:10])}")
    if not names:
        text = f"no stream holds the subject {subject}"
        target = api.subjects.streams("NAMES")
        raise StreamNotFound(text, code=404, err_code=STREAM_NOT_FOUND, subject=target)
    return names[0]

"""Explain the refusal of subjects that another stream has."""

from __future__ import annotations

from typing import Final

from js_async.api.api import Api
from js_async.api.pager import StreamInfos
from twinstream.core.deadline import Deadline
from twinstream.errors import SubjectOverlap, TwinstreamError
from twinstream.models import StreamConfig

__all__ = ["overlap_explained"]

# The largest number of subjects that are looked up, with a request for each.
_MOST: Final = 100


async def overlap_explained(
    api: Api, name: str, config: StreamConfig, error: SubjectOverlap, deadline: Deadline
) -> SubjectOverlap:
    """Return an error that names the other stream and its subject.

    If no other stream is found, for example because the user may not list streams, the result is
    `error`.
    """
    try:
        found = await _found(api, name, config, deadline)
    except TwinstreamError:
        return error
    if not found:
        return error
    return SubjectOverlap(
        f"{error.description}: {found}; give the streams different subjects, or add the subjects to"
        " the existing stream",
        code=error.code,
        err_code=error.err_code,
        subject=error.subject,
    )


async def _found(api: Api, name: str, config: StreamConfig, deadline: Deadline) -> str:
    from twinstream.models.names.subjects import can_meet

    for subject in (config.subjects or [name])[:_MOST]:
        async for info in StreamInfos(api, subject, deadline.remaining()):
            if info.config.name == name:
                continue
            for other in info.config.subjects or ():
                if can_meet(subject, other):
                    return f"{subject!r} overlaps {other!r} of stream {info.config.name}"
    return ""

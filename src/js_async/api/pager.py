"""The paged lists of the JetStream API: streams, consumers, and the subjects of a stream."""

from __future__ import annotations

from typing import Any

from js_async.api.api import Api
from js_async.api.listing import Listing, ListPage
from js_async.runtime.concurrency import Stream as Generated
from twinstream.core.deadline import Seconds
from twinstream.core.wire.subjects import check_filter
from twinstream.models import (
    ConsumerInfo,
    ConsumerListResponse,
    ConsumerNamesResponse,
    StreamInfo,
    StreamListResponse,
    StreamNamesResponse,
)

__all__ = ["ConsumerInfos", "ConsumerNames", "StreamInfos", "StreamNames", "subjects"]


def _body(offset: int, subject: str | None = None) -> dict[str, Any] | None:
    # For all server versions an empty body means "all from the start".
    body: dict[str, Any] = {"offset": offset} if offset else {}
    if subject is not None:
        body["subject"] = subject
    return body or None


class StreamInfos(Listing[StreamInfo]):
    """Stream infos, 256 a page."""

    def __init__(self, api: Api, subject: str | None, timeout: Seconds | None = None) -> None:
        super().__init__()
        self._timeout = timeout
        if subject is not None:
            check_filter(subject)
        self._api = api
        self._subject = subject

    async def _ask(self, offset: int) -> ListPage[StreamInfo]:
        target = self._api.subjects.streams("LIST")
        answer = await self._api.call(
            target,
            _body(offset, self._subject),
            StreamListResponse,
            self._api.deadline(self._timeout),
        )
        return ListPage(
            answer.streams or [],
            answer.total or 0,
            answer.limit or 0,
            answer.missing or [],
            answer.offline or {},
        )


class StreamNames(Listing[str]):
    """Stream names, 1,024 a page."""

    def __init__(self, api: Api, subject: str | None, timeout: Seconds | None = None) -> None:
        super().__init__()
        self._timeout = timeout
        if subject is not None:
            check_filter(subject)
        self._api = api
        self._subject = subject

    async def _ask(self, offset: int) -> ListPage[str]:
        target = self._api.subjects.streams("NAMES")
        answer = await self._api.call(
            target,
            _body(offset, self._subject),
            StreamNamesResponse,
            self._api.deadline(self._timeout),
        )
        return ListPage(answer.streams or [], answer.total or 0, answer.limit or 0)


class ConsumerInfos(Listing[ConsumerInfo]):
    """The consumer infos of a stream, 256 a page."""

    def __init__(self, api: Api, stream: str, timeout: Seconds | None) -> None:
        super().__init__()
        self._timeout = timeout
        self._api = api
        self._target = api.subjects.consumers("LIST", stream)

    async def _ask(self, offset: int) -> ListPage[ConsumerInfo]:
        answer = await self._api.call(
            self._target, _body(offset), ConsumerListResponse, self._api.deadline(self._timeout)
        )
        return ListPage(
            answer.consumers or [],
            answer.total or 0,
            answer.limit or 0,
            answer.missing or [],
            answer.offline or {},
        )


class ConsumerNames(Listing[str]):
    """The consumer names of a stream, 1,024 a page."""

    def __init__(self, api: Api, stream: str, timeout: Seconds | None) -> None:
        super().__init__()
        self._timeout = timeout
        self._api = api
        self._target = api.subjects.consumers("NAMES", stream)

    async def _ask(self, offset: int) -> ListPage[str]:
        answer = await self._api.call(
            self._target, _body(offset), ConsumerNamesResponse, self._api.deadline(self._timeout)
        )
        return ListPage(answer.consumers or [], answer.total or 0, answer.limit or 0)


async def subjects(
    api: Api, stream: str, filter_subject: str, timeout: Seconds | None
) -> Generated[tuple[str, int]]:
    """Iterate over the subjects of a stream with their counts, 100,000 a page."""
    offset, more = 0, True
    while more:
        body: dict[str, Any] = {"subjects_filter": filter_subject}
        if offset:
            body["offset"] = offset
        answer = await api.stream_info(stream, api.deadline(timeout), body)
        page = answer.state.subjects or {}
        for subject, count in page.items():
            yield subject, count
        offset += len(page)
        # A response without a total is complete: the server pages only what exceeds one response.
        more = bool(page) and offset < (answer.total or 0)

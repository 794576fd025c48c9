"""The paged lists of the JetStream API: streams, consumers, and the subjects of a stream."""

from __future__ import annotations

from typing import Any, TypeAlias, TypeVar

from js_async.api.api import Api
from js_async.api.listing import Listing, ListPage
from js_async.runtime.concurrency import Items
from twinstream.core.deadline import Seconds
from twinstream.core.wire.subjects import check_filter
from twinstream.models import (
    ConsumerInfo,
    ConsumerListResponse,
    ConsumerNamesResponse,
    Model,
    StreamInfo,
    StreamListResponse,
    StreamNamesResponse,
)

__all__ = ["ConsumerInfos", "ConsumerNames", "StreamInfos", "StreamNames", "subjects"]

T = TypeVar("T")
M = TypeVar("M", bound=Model)

_Answer: TypeAlias = (
    StreamListResponse | StreamNamesResponse | ConsumerListResponse | ConsumerNamesResponse
)


def _body(offset: int, subject: str | None = None) -> dict[str, Any] | None:
    # An empty body requests the first page without a filter, in all server versions.
    body: dict[str, Any] = {"offset": offset} if offset else {}
    if subject is not None:
        body["subject"] = subject
    return body or None


class _Pages(Listing[T]):
    """The base class of lists whose pages are responses to an API request.

    `target` is the request subject. A list of streams may have a filter, `subject`. It then
    contains only the streams with a matching subject.
    """

    def __init__(
        self, api: Api, target: str, timeout: Seconds | None, subject: str | None = None
    ) -> None:
        super().__init__()
        if subject is not None:
            check_filter(subject)
        self._api = api
        self._target = target
        self._timeout = timeout
        self._subject = subject

    async def _call(self, offset: int, kind: type[M]) -> M:
        body = _body(offset, self._subject)
        return await self._api.call(self._target, body, kind, self._api.deadline(self._timeout))


class StreamInfos(_Pages[StreamInfo]):
    """An iterator over the infos of streams, 256 a page."""

    def __init__(self, api: Api, subject: str | None, timeout: Seconds | None = None) -> None:
        super().__init__(api, api.subjects.streams("LIST"), timeout, subject)

    async def _request_page(self, offset: int) -> ListPage[StreamInfo]:
        answer = await self._call(offset, StreamListResponse)
        return _list_page(answer.streams, answer, answer.missing, answer.offline)


class StreamNames(_Pages[str]):
    """An iterator over the names of streams, 1,024 a page."""

    def __init__(self, api: Api, subject: str | None, timeout: Seconds | None = None) -> None:
        super().__init__(api, api.subjects.streams("NAMES"), timeout, subject)

    async def _request_page(self, offset: int) -> ListPage[str]:
        answer = await self._call(offset, StreamNamesResponse)
        return _list_page(answer.streams, answer)


class ConsumerInfos(_Pages[ConsumerInfo]):
    """An iterator over the infos of a stream's consumers, 256 a page."""

    def __init__(self, api: Api, stream: str, timeout: Seconds | None) -> None:
        super().__init__(api, api.subjects.consumers("LIST", stream), timeout)

    async def _request_page(self, offset: int) -> ListPage[ConsumerInfo]:
        answer = await self._call(offset, ConsumerListResponse)
        return _list_page(answer.consumers, answer, answer.missing, answer.offline)


class ConsumerNames(_Pages[str]):
    """An iterator over the names of a stream's consumers, 1,024 a page."""

    def __init__(self, api: Api, stream: str, timeout: Seconds | None) -> None:
        super().__init__(api, api.subjects.consumers("NAMES", stream), timeout)

    async def _request_page(self, offset: int) -> ListPage[str]:
        answer = await self._call(offset, ConsumerNamesResponse)
        return _list_page(answer.consumers, answer)


def _list_page(
    items: list[T] | None,
    answer: _Answer,
    missing: list[str] | None = None,
    offline: dict[str, str] | None = None,
) -> ListPage[T]:
    return ListPage(items or [], answer.total or 0, answer.limit or 0, missing or [], offline or {})


async def subjects(
    api: Api, stream: str, filter_subject: str, timeout: Seconds | None
) -> Items[tuple[str, int]]:
    """Iterate over subjects of a stream and their message counts. A page has up to 100,000 of them.

    The subjects are those that match `filter_subject`. `timeout` is the timeout of each page.
    """
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
        # The server sends a total only if the subjects need more than one page.
        more = bool(page) and offset < (answer.total or 0)

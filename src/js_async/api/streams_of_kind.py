"""Lists of buckets and object stores. They are derived from the list of all streams."""

from __future__ import annotations

from typing import Any, Final, TypeVar

from js_async.api.api import Api
from js_async.api.listing import Listing, ListPage
from js_async.api.pager import StreamInfos
from twinstream.core.deadline import Seconds
from twinstream.models import StreamInfo

__all__ = ["NamesOfKind", "StatusesOfKind"]

T = TypeVar("T")


class StatusesOfKind(Listing[T]):
    """An iterator over the statuses of all buckets or all object stores.

    It lists all streams and selects by name, because a filter by subject would miss mirrors.
    """

    def __init__(self, api: Api, timeout: Seconds | None) -> None:
        super().__init__()
        self._streams: Final = StreamInfos(api, None, timeout)

    def _has_name(self, stream: str) -> bool:
        """Return whether a stream of this name stores a bucket or object store, as listed here."""
        raise NotImplementedError

    def _status(self, info: StreamInfo) -> T | None:
        """Return the status of a bucket or object store, or None if the stream is another kind."""
        raise NotImplementedError

    async def _request_page(self, offset: int) -> ListPage[T]:
        page = await self._streams._request_page(offset)
        found = [status for status in map(self._status, page.items) if status is not None]
        missing = [name for name in page.missing if self._has_name(name)]
        offline = {name: why for name, why in page.offline.items() if self._has_name(name)}
        return ListPage(found, page.total, page.limit or len(page.items), missing, offline)


class NamesOfKind(Listing[str]):
    """An iterator over the names of all buckets or all object stores.

    A name alone does not show that a stream is a bucket, so the infos of the streams are requested.
    """

    def __init__(self, statuses: StatusesOfKind[Any]) -> None:
        super().__init__()
        self._statuses: Final = statuses

    async def _request_page(self, offset: int) -> ListPage[str]:
        page = await self._statuses._request_page(offset)
        names = [status.bucket for status in page.items]
        return ListPage(names, page.total, page.limit, page.missing, page.offline)

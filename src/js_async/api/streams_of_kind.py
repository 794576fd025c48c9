"""Lists of buckets and object stores, derived from the streams of an account."""

from __future__ import annotations

from typing import Final, TypeVar

from js_async.api.api import Api
from js_async.api.listing import Listing, ListPage
from js_async.api.pager import StreamInfos, StreamNames
from twinstream.core.deadline import Seconds
from twinstream.models import StreamInfo

__all__ = ["NamesOfKind", "StatusesOfKind"]

T = TypeVar("T")


class StatusesOfKind(Listing[T]):
    """The status of each bucket or store. A filter by subject would miss mirrors."""

    def __init__(self, api: Api, timeout: Seconds | None) -> None:
        super().__init__()
        self._streams: Final = StreamInfos(api, None, timeout)

    def _has_name(self, stream: str) -> bool:
        """Return whether a stream has a name of this kind."""
        raise NotImplementedError

    def _status(self, info: StreamInfo) -> T | None:
        """Return the status, or None for a stream of another kind."""
        raise NotImplementedError

    async def _ask(self, offset: int) -> ListPage[T]:
        page = await self._streams._ask(offset)
        found = [status for status in map(self._status, page.items) if status is not None]
        missing = [name for name in page.missing if self._has_name(name)]
        offline = {name: why for name, why in page.offline.items() if self._has_name(name)}
        return ListPage(found, page.total, page.limit or len(page.items), missing, offline)


class NamesOfKind(Listing[str]):
    """The names of all buckets or stores."""

    def __init__(self, api: Api, timeout: Seconds | None) -> None:
        super().__init__()
        self._streams: Final = StreamNames(api, None, timeout)

    def _name(self, stream: str) -> str | None:
        """Return the name of the bucket or store in a stream, or None for other streams."""
        raise NotImplementedError

    async def _ask(self, offset: int) -> ListPage[str]:
        page = await self._streams._ask(offset)
        found = [name for name in map(self._name, page.items) if name is not None]
        return ListPage(found, page.total, page.limit or len(page.items))

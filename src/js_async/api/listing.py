"""Lists that the server sends in pages, for example of streams or consumers."""

from __future__ import annotations

from collections import deque
from typing import Generic, Self, TypeVar

from attrs import field, frozen

from js_async.runtime.concurrency import LoopHint

__all__ = ["ListPage", "Listing"]

T = TypeVar("T")


@frozen
class ListPage(Generic[T]):
    """One page of a list. `missing` and `offline` are as in `Listing`."""

    items: list[T]
    total: int
    """The number of entries of the whole list, including `missing` and `offline` ones."""
    limit: int
    """The maximum number of entries of a page; 0 if the server does not report it."""
    missing: list[str] = field(factory=list[str])
    offline: dict[str, str] = field(factory=dict[str, str])


class Listing(LoopHint, Generic[T]):
    """An iterator over the entries of all pages.

    The iterator requests the next page when the caller has taken all entries of the current page.
    The server keeps no cursor. If an entry is created or deleted between two requests, other
    entries may move to another page. The iterator may then yield an entry twice or not at all.
    """

    def __init__(self) -> None:
        self._page: deque[T] = deque()
        self._offset = 0
        self._more = True
        self.missing: list[str] = []
        """The names of entries that exist but did not respond, for example without a leader."""
        self.offline: dict[str, str] = {}
        """The names of entries that the servers store but cannot run, and why (server 2.11.9)."""

    def __repr__(self) -> str:
        rest = "more pages to come" if self._more else "no more pages"
        return f"<{type(self).__name__}: {len(self._page)} buffered, {rest}>"

    async def _request_page(self, offset: int) -> ListPage[T]:
        raise NotImplementedError

    def __aiter__(self) -> Self:
        return self

    async def __anext__(self) -> T:
        """Return the next entry. `missing` and `offline` are complete after the last one."""
        while not self._page:
            if not self._more:
                raise StopAsyncIteration
            self._take(await self._request_page(self._offset))
        return self._page.popleft()

    def _take(self, page: ListPage[T]) -> None:
        self._page.extend(page.items)
        self.missing += [name for name in page.missing if name not in self.missing]
        self.offline.update(page.offline)
        # The server's limit counts missing entries, too.
        self._offset += page.limit or len(page.items)
        self._more = self._offset < page.total and bool(page.limit or page.items)

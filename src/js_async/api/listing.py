"""Paged lists of the server, with the entries that it could not describe."""

from __future__ import annotations

from collections import deque
from typing import Generic, Self, TypeVar

from js_async.runtime.concurrency import LoopHint
from twinstream.models.records import field, frozen

__all__ = ["ListPage", "Listing"]

T = TypeVar("T")


@frozen
class ListPage(Generic[T]):
    """One page of a list."""

    items: list[T]
    total: int
    """Total number of entries, including those that the server could not describe."""
    limit: int
    """Maximum number of entries of a page, 0 if the server does not report it."""
    missing: list[str] = field(factory=list[str])
    offline: dict[str, str] = field(factory=dict[str, str])


class Listing(LoopHint, Generic[T]):
    """Iterates over all pages. Each page is requested when the previous one is used up.

    The server keeps no cursor. An entry that is created or deleted meanwhile may shift others
    across a page boundary, so that a list of several pages shows one of them twice or not at all.
    """

    def __init__(self) -> None:
        self._page: deque[T] = deque()
        self._offset = 0
        self._more = True
        self.missing: list[str] = []
        """Names of entries that exist but did not respond, for example for lack of a leader."""
        self.offline: dict[str, str] = {}
        """Entries that the servers keep but cannot run, with the reason (server 2.11.9)."""

    def __repr__(self) -> str:
        rest = "more pages to come" if self._more else "no more pages"
        return f"<{type(self).__name__}: {len(self._page)} buffered, {rest}>"

    async def _ask(self, offset: int) -> ListPage[T]:
        raise NotImplementedError

    def __aiter__(self) -> Self:
        return self

    async def __anext__(self) -> T:
        """Return the next entry. `missing` and `offline` are complete after the last one."""
        while not self._page:
            if not self._more:
                raise StopAsyncIteration
            self._take(await self._ask(self._offset))
        return self._page.popleft()

    def _take(self, page: ListPage[T]) -> None:
        self._page.extend(page.items)
        self.missing += [name for name in page.missing if name not in self.missing]
        self.offline.update(page.offline)
        # Missing entries count towards the page's limit, too.
        self._offset += page.limit or len(page.items)
        self._more = self._offset < page.total and bool(page.limit or page.items)

"""Lists that the server answers in pages, with what it could not tell about."""

from __future__ import annotations

from collections import deque
from typing import Generic, Self, TypeVar

from attrs import field, frozen

from js_async.runtime.concurrency import LoopHint

__all__ = ["ListPage", "Listing"]

T = TypeVar("T")


@frozen
class ListPage(Generic[T]):
    """One page, as the server answered it."""

    items: list[T]
    total: int
    """How many there are in all, counting those that the server could not describe."""
    limit: int
    """How many places a page has, 0 where the server does not say."""
    missing: list[str] = field(factory=list[str])
    offline: dict[str, str] = field(factory=dict[str, str])


class Listing(LoopHint, Generic[T]):
    """Iterates over all pages; each is asked for when the one before is used up.

    What is created or deleted meanwhile may move others across the border of a page, so that a
    list of several pages shows one twice or not at all; the server keeps no cursor.
    """

    def __init__(self) -> None:
        self._page: deque[T] = deque()
        self._offset = 0
        self._more = True
        self.missing: list[str] = []
        """Names of those that exist and did not answer, because their leader is away, say."""
        self.offline: dict[str, str] = {}
        """Those that the servers keep but cannot run, with the reason (server 2.11.9)."""

    def __repr__(self) -> str:
        rest = "more pages to come" if self._more else "no more pages"
        return f"<{type(self).__name__}: {len(self._page)} buffered, {rest}>"

    async def _ask(self, offset: int) -> ListPage[T]:
        raise NotImplementedError

    def __aiter__(self) -> Self:
        return self

    async def __anext__(self) -> T:
        """Return the next one. `missing` and `offline` are whole when the iteration has ended."""
        while not self._page:
            if not self._more:
                raise StopAsyncIteration
            self._take(await self._ask(self._offset))
        return self._page.popleft()

    def _take(self, page: ListPage[T]) -> None:
        self._page.extend(page.items)
        self.missing += [name for name in page.missing if name not in self.missing]
        self.offline.update(page.offline)
        # Those that are missing hold places of the page too.
        self._offset += page.limit or len(page.items)
        self._more = self._offset < page.total and bool(page.limit or page.items)

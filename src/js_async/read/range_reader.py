"""Read a range of a stream's sequences page by page, completely even if replicas lag.

`twinstream.core.read.range_read` decides the next step. This module carries it out.
"""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import suppress
from typing import Final, Protocol

from js_async.api.api import Api
from js_async.read.get_message import check_not_hidden, next_seq
from js_async.read.page_sources import ConsumerPages, LeaderPages
from js_async.runtime.concurrency import sleep
from twinstream.core.deadline import Deadline
from twinstream.core.on_failure import AsyncOnFailure
from twinstream.core.read.page import PageEnd, StoredPage
from twinstream.core.read.range_read import (
    AskLeader,
    Finished,
    Page,
    Pause,
    RangeRead,
)
from twinstream.core.wire.single_answers import SingleAnswers
from twinstream.errors import (
    BadArgument,
    NoResponders,
    RequestTimeout,
    TwinstreamError,
)
from twinstream.errors.transient import LOST_RESPONSE, is_transient
from twinstream.models import RetentionPolicy
from twinstream.models.numbers import HIDDEN_FROM

__all__ = ["PageSource", "RangeReader"]

# Pause before a request to the leader is repeated (seconds). Elections take tenths of a second.
_RETRY_PAUSE: Final = 0.1


class PageSource(Protocol):
    """A way to read pages: by direct get, by an ephemeral consumer, or from the leader."""

    async def begin(self, ask: Page) -> None:
        """Request a page. A later call of `page` with the same `ask` receives the response."""
        ...

    async def page(self, ask: Page, read: RangeRead, page: StoredPage) -> PageEnd:
        """Read a page: add the messages that `read` accepts to `page`, and return how it ended."""
        ...

    async def close(self, *, wait: bool = True) -> None:
        """Release resources of the client and the server. The next page opens them again.

        If `wait` is false, do not wait for responses of the server.
        """
        ...


class RangeReader:
    """A reader for a range of one stream.

    Args:
        api: The API.
        stream: Name of the stream.
        read: The engine that decides what to read next.
        source: The page source.
        filters: Subject filters of the source, also used for requests to the leader.
        timeout: Seconds without progress after which the read fails.
        ahead: Request the next page before the caller needs it. While the caller processes a page,
            the response with the next page is buffered.
        bulk: Return Arrow arrays where possible.
        direct: Whether the source uses direct gets. If a mirror answers, the following pages are
            read from the stream itself, because a mirror may lack messages.
    """

    def __init__(
        self,
        api: Api,
        stream: str,
        read: RangeRead,
        source: PageSource,
        *,
        filters: Sequence[str] = (),
        timeout: float = 120.0,
        ahead: bool = False,
        bulk: bool = False,
        direct: bool = False,
    ) -> None:
        self._api: Final = api
        self._stream: Final = stream
        self._read: Final = read
        self._source = source
        self._filters: Final = tuple(filters)
        # Filters for requests to the leader. With several filters, direct gets read all messages of
        # the range, so requests to the leader must not filter either.
        self._leader_filters = () if direct and len(filters) > 1 else self._filters
        self._timeout: Final = timeout
        self._ahead: Final = ahead
        self._bulk: Final = bulk
        # Whether to check that the stream allows direct gets, if a page has no responders.
        self._checks_direct = direct
        self._deadline = Deadline.after(timeout)
        # A page whose read was cancelled or interrupted. The next call continues it.
        self._unfinished: StoredPage | None = None
        self._finished: StoredPage | None = None
        self._last_failure = "the replicas have not caught up with the leader"

    @property
    def first_seq(self) -> int:
        """The lowest sequence read so far, or 0 before the first message."""
        return self._read.first_seq

    async def next_page(self) -> StoredPage | None:
        """Return the next page, with at least one message, or None if the range is complete.

        An error releases the resources of the read. The next call then opens them again.

        Raises:
            StreamNotFound: The stream does not exist.
            JetStreamError: The server refused a request.
            BadArgument: The stream does not allow direct gets.
            UnsuitableSettings: The server may store messages that it does not return.
            RequestTimeout: There was no progress for the whole timeout.
        """
        try:
            return await self._next_page()
        except TwinstreamError:
            # Do not wait for the server, which may not respond.
            await self._source.close(wait=False)
            raise

    async def _next_page(self) -> StoredPage | None:
        """Follow the steps of the engine to the next page, or to the end of the range.

        An interrupted call keeps its page, and the next call returns it.
        """
        while self._finished is None:
            step = self._read.step
            if isinstance(step, Finished):
                return None
            if isinstance(step, Page):
                page = await self._read_page(step)
                if self._read.next_seq > step.seq:
                    self._deadline = Deadline.after(self._timeout)
                if len(page):
                    self._finished = page
                    await self._look_ahead()
                    if isinstance(self._read.step, Finished):
                        # The caller may not ask for another page.
                        await self._source.close(wait=False)
            elif isinstance(step, AskLeader):
                seq = await self._ask_leader(step.seq)
                if seq is None and self._read.end > HIDDEN_FROM and not self._read.is_open:
                    await check_not_hidden(self._api, self._stream)
                self._read.leader_has(seq)
            else:
                await self._pause(step)
        page, self._finished = self._finished, None
        return page

    async def close(self) -> None:
        """Release the resources of this read."""
        await self._source.close()

    async def _look_ahead(self) -> None:
        step = self._read.step
        if not (self._ahead and isinstance(step, Page) and self._api.transport.is_connected):
            return
        try:
            await self._source.begin(step)
        except TwinstreamError as error:
            self._last_failure = str(error)  # `_read_page` requests the page again

    async def _read_page(self, step: Page) -> StoredPage:
        """Request a page, receive it and report its end to the engine.

        A lost response does not raise: the page contains what has arrived. If a mirror answers, or
        if only the first response to a request arrives, later pages come from another source.
        """
        page = self._unfinished = self._unfinished or StoredPage()
        try:
            end = await self._source.page(step, self._read, page)
        except LOST_RESPONSE as error:
            end = PageEnd(failure=str(error))
        except NoResponders as error:
            end = PageEnd(failure=str(error), missing=True)
        except SingleAnswers as error:
            # One message for each request is slow, but always possible.
            await self._source.close()
            self._source = LeaderPages(self._api, self._stream, self._filters)
            self._leader_filters = self._filters
            end = PageEnd(failure=str(error))
        if end.failure:
            self._last_failure = end.failure
            if end.mirror:
                await self._leave_mirrors()
            elif end.missing:
                # There were no responders. If the stream was deleted, this request raises
                # `StreamNotFound`. If the stream is being moved, the request waits for its leader.
                await self._ask_leader(step.seq)
                await self._require_direct()
            self._read.page_failed()
        else:
            self._read.page_ended(more=end.more)
        self._unfinished = None
        return page

    async def _leave_mirrors(self) -> None:
        """Continue with a page source that mirrors do not serve."""
        await self._source.close()
        self._source = await self._own_pages()
        self._leader_filters = self._filters

    async def _own_pages(self) -> PageSource:
        pages = ConsumerPages(self._api, self._stream, self._filters, bulk=self._bulk)
        # If permissions or a limit refuse the consumer, read from the leader instead.
        with suppress(TwinstreamError):
            async with AsyncOnFailure(pages.close):
                info = await self._api.stream_info(self._stream)
                # With another retention policy, a consumer could remove messages from the stream.
                if info.config.retention in (None, RetentionPolicy.LIMITS):
                    await pages.open(self._read.next_seq)
                    return pages
        return LeaderPages(self._api, self._stream, self._filters)

    async def _require_direct(self) -> None:
        """Raise `BadArgument` if the source needs direct gets and the stream does not allow them.

        This is checked only once.
        """
        if not self._checks_direct:
            return
        try:
            info = await self._api.stream_info(self._stream)
        except TwinstreamError:
            # No response, or no permission for the request: the read continues until its timeout.
            return
        self._checks_direct = False
        if not info.config.allow_direct:
            raise BadArgument(
                f"stream {self._stream} does not allow direct gets: read with direct=False, or set"
                " allow_direct"
            )

    async def _pause(self, step: Pause) -> None:
        if self._deadline.expired():
            raise RequestTimeout(
                f"stream {self._stream}: no progress at sequence {self._read.next_seq}"
                f" for {self._timeout:g} s; last trouble: {self._last_failure}"
            )
        await sleep(step.seconds)
        self._read.paused()

    async def _ask_leader(self, seq: int) -> int | None:
        """Return the leader's first matching sequence from `seq` on, or None if there is none."""
        while True:
            try:
                return await next_seq(self._api, self._stream, self._leader_filters or (">",), seq)
            except TwinstreamError as error:
                if not is_transient(error):
                    raise
                await self._retry(error)

    async def _retry(self, error: Exception) -> None:
        if self._deadline.expired():
            raise error
        await sleep(_RETRY_PAUSE)

# Generated from src/js_async/read/range_reader.py by codegen/twin.py. Edit that file instead.
"""Read a range of a stream's sequences, page by page, complete even where replicas lag.

What to do next is decided in `twinstream.core.read.range_read`; this module does it.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final, Protocol

from twinstream.core.deadline import Deadline
from twinstream.errors import (
    BadArgument,
    ConnectionLost,
    JetStreamError,
    NoResponders,
    RequestTimeout,
    TwinstreamError,
)
from twinstream.core.read.range_read import (
    AskLeader,
    Finished,
    Page,
    Pause,
    RangeRead,
)
from twinstream.core.read.page import PageEnd, StoredPage
from twinstream.models import RetentionPolicy
from twinstream.models._sequences import HIDDEN_FROM
from js_sync.api.api import Api
from js_sync.read.get_message import check_not_hidden, next_seq
from js_sync.runtime.concurrency import sleep
from js_sync.read.page_sources import ConsumerPages, LeaderPages

__all__ = ["PageSource", "RangeReader"]

# Seconds before the leader is asked again when it did not answer: elections take some tenths.
_RETRY_PAUSE: Final = 0.1


class PageSource(Protocol):
    """A way to read one page: direct get, or an ephemeral consumer."""

    def begin(self, ask: Page) -> None:
        """Ask for a page; `page` for the same one then takes its answer."""
        ...

    def page(self, ask: Page, read: RangeRead, page: StoredPage) -> PageEnd:
        """Read one page into `page`: the messages whose sequences `read` accepts."""
        ...

    def close(self) -> None:
        """Give back what the server keeps for it."""
        ...


class RangeReader:
    """Reads what `read` asks for from one stream.

    `filters` are those of the source, needed to ask the leader. `timeout` is how many seconds the
    read may go without progress, not how long it may take. With `ahead` the next page is asked for
    before the last one is handed over, so that one page waits in memory while another is worked
    on. `direct` says that the source reads by direct get; if a mirror answers one, which need not
    have all that the stream has, the rest is read from the stream itself, with `bulk` as Arrow
    arrays where that can be.
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
        # Direct get filters by one subject or not at all; the leader is asked for the same.
        self._asked = () if direct and len(filters) > 1 else self._filters
        self._timeout: Final = timeout
        self._ahead: Final = ahead
        self._bulk: Final = bulk
        # Whether to check, at the first trouble, that the stream allows direct gets.
        self._look_at_config = direct
        self._deadline = Deadline.after(timeout)
        # What was read when the reader was cancelled: it belongs to whoever reads on.
        self._unfinished: StoredPage | None = None
        self._finished: StoredPage | None = None
        self._trouble = "the replicas have not caught up with the leader"

    @property
    def first_seq(self) -> int:
        """The first sequence that was found so far, 0 as long as there is none."""
        return self._read.first_seq

    def next_page(self) -> StoredPage | None:
        """Return the next messages, at least one, or None when the range is complete.

        Raises `StreamNotFound`, another `JetStreamError`, `BadArgument` when the stream does not
        allow direct gets, `NotPromised` when the server may hold messages that it does not show,
        or `RequestTimeout` when nothing came for the whole timeout.
        """
        while self._finished is None:
            step = self._read.step
            if isinstance(step, Finished):
                return None
            if isinstance(step, Page):
                page = self._page(step)
                if self._read.next_seq > step.seq:
                    self._deadline = Deadline.after(self._timeout)
                if len(page):
                    self._finished = page
                    self._look_ahead()
            elif isinstance(step, AskLeader):
                seq = self._ask_leader(step.seq)
                if seq is None and self._read.end > HIDDEN_FROM and not self._read.is_open:
                    check_not_hidden(self._api, self._stream)
                self._read.leader_has(seq)
            else:
                self._pause(step)
        page, self._finished = self._finished, None
        return page

    def close(self) -> None:
        """Give back what the server keeps for this read."""
        self._source.close()

    def _look_ahead(self) -> None:
        step = self._read.step
        if not (self._ahead and isinstance(step, Page) and self._api.transport.is_connected):
            return
        try:
            self._source.begin(step)
        except TwinstreamError as error:
            self._trouble = str(error)  # the page is asked for again when it is its turn

    def _page(self, step: Page) -> StoredPage:
        page = self._unfinished = self._unfinished or StoredPage()
        try:
            end = self._source.page(step, self._read, page)
        except (ConnectionLost, RequestTimeout) as error:
            end = PageEnd(failure=str(error))
        except NoResponders as error:
            end = PageEnd(failure=str(error), missing=True)
        if end.failure:
            self._trouble = end.failure
            if end.mirror:
                self._leave_mirrors()
            elif end.missing:
                # Nobody serves the page: the leader knows whether the stream is gone or moving.
                self._ask_leader(step.seq)
                self._require_direct()
            self._read.page_failed()
        else:
            self._read.page_ended(more=end.more)
        self._unfinished = None
        return page

    def _leave_mirrors(self) -> None:
        """Read on in a way in which only the stream itself answers."""
        self._source.close()
        self._source = self._own_pages()
        self._asked = self._filters

    def _own_pages(self) -> PageSource:
        try:
            info = self._api.stream_info(self._stream)
            # Of others a consumer would change what the stream keeps.
            if info.config.retention in (None, RetentionPolicy.LIMITS):
                pages = ConsumerPages(self._api, self._stream, self._filters, bulk=self._bulk)
                pages.open(self._read.next_seq)
                return pages
        except TwinstreamError:
            # No permission, or no further consumer: the leader gives the messages without one.
            pass
        return LeaderPages(self._api, self._stream, self._filters)

    def _require_direct(self) -> None:
        """Raise `BadArgument` if the stream does not allow direct gets: then none will succeed."""
        if not self._look_at_config:
            return
        try:
            info = self._api.stream_info(self._stream)
        except TwinstreamError:
            # No answer now, or no permission to ask: the read goes on until its timeout.
            return
        self._look_at_config = False
        if not info.config.allow_direct:
            raise BadArgument(
                f"stream {self._stream} does not allow direct gets: read with direct=False, or set"
                " allow_direct"
            )

    def _pause(self, step: Pause) -> None:
        if self._deadline.expired():
            raise RequestTimeout(
                f"stream {self._stream}: no progress at sequence {self._read.next_seq}"
                f" for {self._timeout:g} s; last trouble: {self._trouble}"
            )
        sleep(step.seconds)
        self._read.paused()

    def _ask_leader(self, seq: int) -> int | None:
        """Return the leader's next sequence at or after `seq`, None when there is none."""
        while True:
            try:
                return next_seq(self._api, self._stream, self._asked or (">",), seq)
            except (ConnectionLost, RequestTimeout, NoResponders) as error:
                self._retry(error)
            except JetStreamError as error:
                if error.code != 503:  # no leader just now
                    raise
                self._retry(error)

    def _retry(self, error: Exception) -> None:
        if self._deadline.expired():
            raise error
        sleep(_RETRY_PAUSE)

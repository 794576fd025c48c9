# Generated from src/js_async/read/snapshot.py by codegen/twin.py. Edit that file instead.
"""Taking the state of a stream by subject, at one sequence, however much is written meanwhile.

Theory of operation
-------------------
Up to 1,024 subjects are one direct get, which the answering replica looks up at one moment; its
end marker says how far the replica had come. That is a whole snapshot when the replica had at
least what the leader had at the start.

More subjects take several answers. A stream that keeps what was overwritten can be read at
leisure, up to a sequence that was its last one meanwhile: a consumer gives the last message of each
subject and all that came since. A stream that keeps a limited number for each subject may lose a
message before it was read, pushed out by one behind the end. So there the read goes on, in order,
to a moment when nothing is left: no subject's last message can have been missed then, because it
is still there and was passed. One direct get sees such a moment even while others write, for the
server does not wait between its messages: its end marker says that nothing is pending. A replica
that was asked before may have been ahead of the one that says so, therefore this counts only from
the last message on that the leader had after all other answers. Without direct gets the leader
itself must have nothing further, which takes a pause in the writing as long as a request.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from twinstream.core.deadline import Deadline
from twinstream.core.read.direct_get import EVERYTHING, last_request
from twinstream.errors import ConnectionLost, NoResponders, RequestTimeout
from twinstream.core.read.multi_last import MultiAnswer, MultiEnd, chunks, multi_request
from twinstream.core.read.range_read import (
    FIRST_PAUSE,
    LONGEST_PAUSE,
    OPEN_END,
    PAGE_BYTES,
    PAGE_MESSAGES,
    Page,
    RangeRead,
)
from twinstream.core.read.read_request import SnapshotRequest, choose
from twinstream.core.read.snapshot import Latest, Snapshot
from twinstream.core.read.page import PageEnd, StoredPage
from twinstream.models import RetentionPolicy, StreamConfig
from twinstream.models._sequences import HIDDEN_FROM
from js_sync.api.api import Api
from js_sync.api.leader_info import confirmed_info
from js_sync.read.get_message import check_not_hidden, first_seq_at, next_seq, seq_of
from js_sync.api.inbox import Inbox
from js_sync.runtime.concurrency import sleep
from js_sync.read.page_sources import ConsumerPages, DirectPages
from js_sync.read.stream_range import open_range
from js_sync.read.range_reader import RangeReader

__all__ = ["take_snapshot"]

# Leader requests that a snapshot of the past may cost; with more filters all of it is read.
_FEW_FILTERS: Final = 32


def take_snapshot(api: Api, stream: str, request: SnapshotRequest) -> Snapshot:
    """Return the last message of each subject that the request's filters match."""
    info = confirmed_info(api, stream, Deadline.after(request.timeout))
    last_seq, at_seq = info.state.last_seq, request.at_seq
    if request.at_time is not None:
        at_seq = first_seq_at(api, stream, request.at_time, last_seq + 1) - 1
    if last_seq == 0 or at_seq == 0:
        return Snapshot(stream, 0, {})
    if last_seq >= HIDDEN_FROM:
        check_not_hidden(api, stream)
    work = _Snapshot(api, stream, info.config, request.subjects, request.timeout)
    try:
        if at_seq is None:
            return work.of_now(last_seq)
        return work.of_the_past(min(at_seq, last_seq))
    finally:
        work.close()


class _Snapshot:
    """One snapshot in the making."""

    def __init__(
        self, api: Api, stream: str, config: StreamConfig, filters: Sequence[str], timeout: float
    ) -> None:
        self._api: Final = api
        self._stream: Final = stream
        self._config: Final = config
        self._filters: Final = tuple(filters)
        self._timeout: Final = timeout
        self._version: Final = api.transport.server_info.version_numbers
        self._direct = choose(None, 1, config, self._version) == "direct"
        self._deadline: Final = Deadline.after(timeout)
        self._pause = FIRST_PAUSE
        self._inbox: Final = Inbox(api)
        self._latest: Final = Latest()

    def close(self) -> None:
        self._inbox.close()

    # ---- as it is now

    def of_now(self, last_seq: int) -> Snapshot:
        """Return the state at `last_seq`, which the leader had at the start, or later."""
        if not self._direct:
            return self._by_reading(last_seq)
        parts = chunks(self._filters or (EVERYTHING,))
        seqs: list[int] = []
        for part in parts:
            found = self._ask_until(part, last_seq)
            if found is None:
                return self._by_reading(last_seq)
            seqs += found
        if len(seqs) == 1:
            return self._latest.snapshot(self._stream, seqs[0])
        return self._catch_up(last_seq)

    def _ask_until(self, part: Sequence[str], last_seq: int) -> list[int] | None:
        """Ask replicas for a part until one had come to `last_seq`; return what each had seen.

        More than one number where the answer did not fit; None where requests of this kind
        cannot give it.
        """
        seq: int | None = None
        seqs: list[int] = []
        while True:
            page = StoredPage()
            end = self._ask(multi_request(part, seq=seq), page)
            if end.mirror:
                # It would answer again: the rest is read from the stream itself.
                self._direct = False
            if end.too_many or end.mirror:
                return None
            if not end.failure and not end.up_to and not page.seqs:
                # Found nothing, and does not say how far it had come.
                return None
            if end.failure or end.up_to < last_seq:
                reason = end.failure or f"a replica had sequence {end.up_to} of {last_seq}"
                self._wait(reason)
                continue
            self._latest.add(page)
            seqs.append(end.up_to)
            if not (end.more and page.seqs):
                return seqs
            seq = page.seqs[-1] + 1

    def _by_reading(self, last_seq: int) -> Snapshot:
        """Read all there is, or the last messages only where a consumer does no harm."""
        config, filters = self._config, self._filters
        if config.retention in (None, RetentionPolicy.LIMITS):
            pages = ConsumerPages(self._api, self._stream, filters, last_per_subject=True)
            pages.open(1)
            # What it leaves out is older than this, which is asked for now.
            info = confirmed_info(self._api, self._stream, self._deadline)
            last_seq = info.state.last_seq
            read = RangeRead(1, last_seq + 1)
            reader = RangeReader(
                *(self._api, self._stream, read, pages), filters=filters, timeout=self._timeout
            )
            self._read(read, reader)
        else:
            self._read(RangeRead(1, last_seq + 1))
        if (config.max_msgs_per_subject or 0) <= 0:
            return self._latest.snapshot(self._stream, last_seq)
        if self._direct:
            return self._catch_up(last_seq)
        self._read(RangeRead(last_seq + 1, OPEN_END))
        return self._latest.snapshot(self._stream, max(last_seq, self._latest.last_seq))

    def _plain(self, read: RangeRead) -> RangeReader:
        """Return a reader of all messages."""
        via = choose(None, len(self._filters), self._config, self._version)
        return open_range(
            self._api, self._stream, read, via, self._filters, timeout=self._timeout, ahead=True
        )

    def _read(self, read: RangeRead, reader: RangeReader | None = None) -> None:
        reader = reader or self._plain(read)
        try:
            while (page := reader.next_page()) is not None:
                self._latest.add(page)
                if read.is_open and self._deadline.expired():
                    raise RequestTimeout(
                        f"stream {self._stream}: no moment without writes within"
                        f" {self._timeout:g} s; with allow_direct none is needed"
                    )
        finally:
            reader.close()

    def _catch_up(self, seq: int) -> Snapshot:
        """Read on behind `seq` to a moment when nothing is left."""
        filters = self._filters if len(self._filters) == 1 else (EVERYTHING,)
        pages = DirectPages(self._api, self._stream, self._filters)
        read = RangeRead(seq + 1, OPEN_END)
        try:
            while True:
                newest = self._newest(filters[0])
                if newest < read.next_seq:
                    break
                page, asked = StoredPage(), read.next_seq
                ask = Page(asked, PAGE_MESSAGES, PAGE_BYTES)
                try:
                    end = pages.page(ask, read, page)
                except (ConnectionLost, RequestTimeout, NoResponders) as error:
                    end = PageEnd(failure=str(error))
                self._latest.add(page)
                # Nothing pending, and it is not the silence of a replica that is behind.
                if not (end.failure or end.more) and read.next_seq > max(newest, asked):
                    break
                if end.failure or read.next_seq == asked or self._deadline.expired():
                    self._wait(end.failure or "a replica has not caught up with the leader")
        finally:
            pages.close()
        return self._latest.snapshot(self._stream, read.next_seq - 1)

    def _newest(self, subject: str) -> int:
        """Return the sequence of the last message that the leader has, 0 without one."""
        return seq_of(self._api, self._stream, last_request(subject)) or 0

    # ---- as it was

    def of_the_past(self, up_to_seq: int) -> Snapshot:
        """Return the state at a sequence that the leader has reached."""
        few = len(self._filters) <= _FEW_FILTERS
        if not (self._direct and few and self._past(up_to_seq)):
            self._read(RangeRead(1, up_to_seq + 1))
        return self._latest.snapshot(self._stream, up_to_seq)

    def _past(self, up_to_seq: int) -> bool:
        """Ask in one request; tell whether that was possible."""
        filters = self._filters or (EVERYTHING,)
        while True:
            page = StoredPage()
            end = self._ask(multi_request(filters, up_to_seq=up_to_seq), page)
            if end.too_many or end.more or end.mirror:
                return False
            # The replica says what it was asked, not how far it had come: that its newest
            # message is the newest one below the bound, only the leader knows.
            newest = max(page.seqs, default=0)
            if not end.failure and self._is_last(newest, up_to_seq):
                self._latest.add(page)
                return True
            self._wait(end.failure or "a replica has not caught up with the leader")

    def _is_last(self, newest: int, up_to_seq: int) -> bool:
        """Tell whether the leader has nothing behind `newest` up to a sequence."""
        if newest >= up_to_seq:
            return True
        filters = self._filters or (EVERYTHING,)
        following = next_seq(self._api, self._stream, filters, newest + 1)
        return following is None or following > up_to_seq

    # ---- one request

    def _ask(self, request: bytes, page: StoredPage) -> MultiEnd:
        transport = self._api.transport
        subject = self._api.subjects.direct_get(self._stream).encode()
        try:
            transport.ready(self._api.deadline())
            box, reply = self._inbox.open(subject)
            epoch, token = transport.epoch, reply.encode()
            answer = MultiAnswer(token, self._stream.encode(), page)
            transport.send(subject, token, b"", request)
            end = answer.take(box.take_all())
            while end is None:
                self._inbox.wait(box, epoch)
                end = answer.take(box.take_all())
        except (ConnectionLost, RequestTimeout) as error:
            return MultiEnd(failure=str(error))
        if end.missing:
            # Nobody serves it: the leader tells a missing stream from a moving one.
            confirmed_info(self._api, self._stream, self._deadline)
        return end

    def _wait(self, reason: str) -> None:
        if self._deadline.expired():
            raise RequestTimeout(
                f"stream {self._stream}: no snapshot within {self._timeout:g} s;"
                f" last trouble: {reason}"
            )
        sleep(self._pause)
        self._pause = min(self._pause * 2, LONGEST_PAUSE)

"""Read the last message of each subject of a stream as of one sequence, despite concurrent writes.

Theory of operation
-------------------
A single direct get returns up to 1,024 subjects. The answering replica evaluates it at one moment
and reports its last sequence in the end marker of the response. The result is a consistent snapshot
if this sequence is not lower than the leader's last sequence at the start.

More subjects need several responses, so the stream may change between them. There are two cases:

* The stream keeps overwritten messages. It can be read step by step up to one fixed sequence: a
  consumer returns the last message of each subject and then everything stored since.
* The stream limits the number of messages per subject. A later write can then remove a message
  before it is read. The read therefore continues in order until a moment when no message is
  pending. At this moment, the read has passed the last message of every subject.

A direct get can detect such a moment even during writes, because the server does not pause between
the messages of a response. The end marker of the response then reports that no message is pending.
However, the responding replica may lag behind the replica that sent an earlier response. Therefore
the read first requests the leader's last sequence. The end marker counts only if the read has also
reached this sequence. Without direct gets, the leader must report that it has no further message.
This needs a pause between writes that is at least as long as one request.
"""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import suppress
from typing import Final

from js_async.api.api import Api
from js_async.api.inbox import Inbox
from js_async.api.leader_info import confirmed_info
from js_async.read.get_message import check_not_hidden, first_seq_at, next_seq, seq_of
from js_async.read.page_sources import ConsumerPages, DirectPages
from js_async.read.range_reader import RangeReader
from js_async.read.stream_range import open_range
from js_async.runtime.concurrency import sleep
from twinstream.core.deadline import Deadline, is_cut_short
from twinstream.core.read.direct_get import EVERYTHING, last_request
from twinstream.core.read.multi_last import MultiAnswer, MultiEnd, chunks, multi_request
from twinstream.core.read.page import PageEnd, StoredPage
from twinstream.core.read.page_limits import PAGE_BYTES, PAGE_MESSAGES
from twinstream.core.read.range_read import (
    BACKOFF,
    OPEN_END,
    Page,
    RangeRead,
)
from twinstream.core.read.read_request import SnapshotRequest, Via, choose
from twinstream.core.read.snapshot import LastSeqs, Latest, Snapshot
from twinstream.core.server_faults.table import SUBJECT_LISTS
from twinstream.errors import JetStreamError, NoResponders, PermissionDenied, RequestTimeout
from twinstream.errors.transient import LOST_RESPONSE, NO_RESPONSE
from twinstream.models import RetentionPolicy, StorageType, StreamInfo, StreamState
from twinstream.models.numbers import HIDDEN_FROM

__all__ = ["collect", "collect_of_one", "take_snapshot"]

# Maximum bytes of a single response with all messages. A larger snapshot is read in pages.
_AT_ONCE: Final = 4 << 20

# Maximum number of filters for a snapshot of the past by direct get, which needs a request to the
# leader for each filter. With more filters, the whole range is read.
_FEW_FILTERS: Final = 32


async def take_snapshot(api: Api, stream: str, request: SnapshotRequest) -> Snapshot:
    """Return the last message of each subject that matches the filters of `request`."""
    latest = Latest()
    return latest.snapshot(stream, await collect(api, stream, request, latest))


async def collect_of_one(
    api: Api, info: StreamInfo, request: SnapshotRequest, latest: Latest, least: int = 0
) -> int:
    """Do the same as `collect`, for a stream that has one replica according to `info`.

    Only the leader of such a stream answers direct gets, so each response is current. If one
    response contains all messages, no stream info is requested. `least` is a sequence that the
    stream has reached: the response of a replica that has not reached it does not count.
    """
    if request.at_seq is None and request.at_time is None:
        stream, deadline = info.config.name or "", Deadline.after(request.timeout)
        work = _Snapshot(api, stream, info, request.subjects, request.timeout, latest)
        try:
            seq = await work.at_once(least)
        finally:
            await work.close()
        if seq is not None:
            return seq
        request = SnapshotRequest(subjects=request.subjects, timeout=deadline.remaining())
    return await collect(api, info.config.name or "", request, latest)


async def collect(
    api: Api, stream: str, request: SnapshotRequest, latest: Latest | LastSeqs
) -> int:
    """Add the last message of each subject to `latest`; return the sequence of the snapshot.

    `LastSeqs` keeps no messages. If `latest` is of this type, the server omits the payloads where
    it can. If the stream is re-created meanwhile, the function starts over.
    """
    while True:
        info = await confirmed_info(api, stream, Deadline.after(request.timeout))
        try:
            return await _collect(api, stream, info, request, latest)
        except _Recreated:
            latest.clear()


class _Recreated(Exception):
    """The stream was deleted and re-created, so the collected messages are a mixture."""


async def _collect(
    api: Api, stream: str, info: StreamInfo, request: SnapshotRequest, latest: Latest | LastSeqs
) -> int:
    """Collect the last message of each subject in `latest`. Return the sequence of the state.

    That is the state of now, of `at_seq` or of `at_time`. The sequence is 0 for an empty state.
    """
    last_seq, at_seq = info.state.last_seq, request.at_seq
    if request.at_time is not None:
        at_seq = await first_seq_at(api, stream, request.at_time, last_seq + 1) - 1
    if last_seq == 0 or at_seq == 0:
        return 0
    if last_seq >= HIDDEN_FROM:
        await check_not_hidden(api, stream)
    work = _Snapshot(api, stream, info, request.subjects, request.timeout, latest)
    try:
        if at_seq is None:
            seq = await work.of_now(last_seq)
        else:
            seq = await work.of_the_past(min(at_seq, last_seq))
        if not work.is_of_one_moment:
            await work.check_same_stream(Deadline.after(request.timeout))
        return seq
    finally:
        await work.close()


class _Snapshot:
    """A snapshot in progress; see the module's theory of operation."""

    def __init__(
        self,
        api: Api,
        stream: str,
        info: StreamInfo,
        filters: Sequence[str],
        timeout: float,
        latest: Latest | LastSeqs,
    ) -> None:
        self._api: Final = api
        self._stream: Final = stream
        self._config: Final = info.config
        self._filters: Final = tuple(filters)
        self._timeout: Final = timeout
        self._version: Final = api.transport.server_info.version_numbers
        self._direct = choose(None, 1, info.config, self._version) == "direct" and (
            info.config.storage != StorageType.MEMORY or self._has_right_lists(info.state)
        )
        self._deadline: Final = Deadline.after(timeout)
        self._pauses = 0
        self._inbox: Final = Inbox(api, f"{stream}: a snapshot")
        self._latest: Final = latest
        self._headers_only: Final = isinstance(latest, LastSeqs)
        self._created: Final = info.created
        # Why the snapshot is not complete yet.
        self._last_failure = ""
        self.is_of_one_moment = False
        """Whether one response of one replica contains the whole state."""

    async def check_same_stream(self, deadline: Deadline) -> None:
        """Raise `_Recreated` if the stream was re-created since the snapshot began."""
        if (await confirmed_info(self._api, self._stream, deadline)).created != self._created:
            raise _Recreated

    async def close(self) -> None:
        await self._inbox.close()

    # ---- the current state

    async def at_once(self, least: int) -> int | None:
        """Collect the state by one direct get and return its sequence, which is `least` or later.

        Return None if a direct get cannot be used, or if its response is not the complete state.
        """
        # `_has_right_lists` cannot be used, because the number of deleted messages in the given
        # info may be outdated.
        is_wrong = SUBJECT_LISTS.affects(self._version)
        right = not is_wrong or self._config.storage != StorageType.MEMORY
        parts = chunks(self._filters or (EVERYTHING,))
        if not (self._direct and right and len(parts) == 1):
            return None
        page = StoredPage()
        end = await self._get_page(multi_request(parts[0], max_bytes=_AT_ONCE), page)
        # Give up if the response is incomplete. Also give up if `up_to` is 0: no message was found,
        # and the sequence of the replica is unknown.
        if end.failure or end.mirror or end.more or not 0 < end.up_to < HIDDEN_FROM:
            return None
        if end.up_to < least:
            return None
        self._latest.add(page)
        return end.up_to

    async def of_now(self, last_seq: int) -> int:
        """Collect the current state and return its sequence, which is `last_seq` or later.

        `last_seq` is the leader's last sequence at the start.
        """
        # A direct get for many subjects always returns payloads. A consumer can omit them.
        if not self._direct or self._headers_only:
            return await self._by_reading(last_seq)
        parts = chunks(self._filters or (EVERYTHING,))
        seqs: list[int] = []
        for part in parts:
            found = await self._ask_until(part, last_seq)
            if found is None:
                return await self._by_reading(last_seq)
            seqs += found
        if len(seqs) == 1:
            self.is_of_one_moment = True
            return seqs[0]
        return await self._catch_up(last_seq)

    async def _ask_until(self, part: Sequence[str], last_seq: int) -> list[int] | None:
        """Repeat a direct get for some filters until a replica has reached `last_seq`.

        If the messages do not fit into one response, more requests follow. Returns the last
        sequence of the answering replica for each response. Returns None if direct gets cannot
        return these messages.
        """
        seq: int | None = None
        seqs: list[int] = []
        while True:
            page = StoredPage()
            end = await self._get_page(multi_request(part, seq=seq), page)
            if end.mirror:
                # The same mirror may answer again. Read the stream itself instead.
                self._direct = False
            if end.too_many or end.mirror:
                return None
            if not end.failure and not end.up_to and not page.seqs:
                # The response has no message and no last sequence, so it proves nothing.
                return None
            if end.failure or end.up_to < last_seq:
                if not end.failure:
                    # Usually the replica lags. But a re-created stream may never reach `last_seq`.
                    with suppress(*NO_RESPONSE):
                        await self.check_same_stream(self._deadline)
                reason = end.failure or f"a replica had sequence {end.up_to} of {last_seq}"
                await self._wait(reason)
                continue
            self._latest.add(page)
            seqs.append(end.up_to)
            if not (end.more and page.seqs):
                return seqs
            seq = page.seqs[-1] + 1

    async def _by_reading(self, last_seq: int) -> int:
        """Collect the state by reading a range, and return its sequence.

        With retention `limits`, a consumer delivers only the last messages of the subjects. With
        another retention, a consumer could remove messages, so the whole stream is read.
        """
        config, filters = self._config, self._filters
        if config.retention in (None, RetentionPolicy.LIMITS):
            pages = ConsumerPages(
                *(self._api, self._stream, filters),
                last_per_subject=True,
                headers_only=self._headers_only,
            )
            try:
                last_seq = await self._read_last(pages)
            finally:
                await pages.close()
        else:
            await self._read(RangeRead(1, last_seq + 1))
        if (config.max_msgs_per_subject or 0) <= 0:
            return last_seq
        if self._direct:
            return await self._catch_up(last_seq)
        await self._read(RangeRead(last_seq + 1, OPEN_END))
        return max(last_seq, self._latest.last_seq)

    async def _read_last(self, pages: ConsumerPages) -> int:
        """Read the last message of each subject by a consumer; return the stream's last sequence.

        If the server refuses the consumer, or its lists may be wrong, read all messages instead.
        """
        refused = not await self._opens(pages)
        # Request the info after creating the consumer. If the consumer omits a message, a later
        # message of the same subject is then at or below this last sequence.
        info = await confirmed_info(self._api, self._stream, self._deadline)
        last_seq = info.state.last_seq
        read = RangeRead(1, last_seq + 1)
        reader = None
        if refused:
            reader = self._plain(read, "direct")
        elif self._has_right_lists(info.state):
            reader = RangeReader(
                *(self._api, self._stream, read, pages),
                filters=self._filters,
                timeout=self._timeout,
            )
        else:
            await pages.close()
        await self._read(read, reader)
        return last_seq

    async def _opens(self, pages: ConsumerPages) -> bool:
        """Create the consumer and return True.

        If the server refuses it, return False so that the caller can use direct gets. If direct
        gets are not possible either, or no server answers, raise the error.
        """
        try:
            await pages.open(1)
        except NoResponders:
            raise
        except (JetStreamError, PermissionDenied):
            await pages.close()
            if not self._direct:
                raise
            return False
        return True

    def _has_right_lists(self, state: StreamState) -> bool:
        """Return whether the server's lists of last messages are complete and correct."""
        return not (SUBJECT_LISTS.affects(self._version) and state.num_deleted)

    def _plain(self, read: RangeRead, via: Via | None = None) -> RangeReader:
        """Return a reader that reads all messages, not only the last ones."""
        via = choose(via, len(self._filters), self._config, self._version)
        return open_range(
            self._api, self._stream, read, via, self._filters, timeout=self._timeout, ahead=True
        )

    async def _read(self, read: RangeRead, reader: RangeReader | None = None) -> None:
        reader = reader or self._plain(read)
        try:
            while (page := await reader.next_page()) is not None:
                self._latest.add(page)
                if read.is_open and self._deadline.expired():
                    raise RequestTimeout(
                        f"stream {self._stream}: no moment without writes within"
                        f" {self._timeout:g} s; with allow_direct none is needed"
                    )
        finally:
            await reader.close()

    async def _catch_up(self, seq: int) -> int:
        """Read from `seq + 1` until a moment when no message is pending.

        Return the last sequence that the read has passed.
        """
        filters = self._filters if len(self._filters) == 1 else (EVERYTHING,)
        pages = DirectPages(self._api, self._stream, self._filters)
        read = RangeRead(seq + 1, OPEN_END)
        try:
            while True:
                newest = await self._newest(filters[0], read.next_seq)
                if newest < read.next_seq:
                    break
                page, asked = StoredPage(), read.next_seq
                ask = Page(asked, PAGE_MESSAGES, PAGE_BYTES)
                try:
                    end = await pages.page(ask, read, page)
                except NO_RESPONSE as error:
                    end = PageEnd(failure=str(error))
                self._latest.add(page)
                # No message is pending, and the replica does not lag: it has reached the leader's
                # last sequence.
                if not (end.failure or end.more) and read.next_seq > max(newest, asked):
                    break
                if end.failure or read.next_seq == asked or self._deadline.expired():
                    await self._wait(end.failure or "a replica has not caught up with the leader")
        finally:
            await pages.close()
        return read.next_seq - 1

    async def _newest(self, subject: str, seq: int) -> int:
        """Return the sequence of the leader's last message of a subject.

        If the server finds no such message, return 0 if there is none from `seq` on, otherwise the
        last sequence of the stream.
        """
        newest = await seq_of(self._api, self._stream, last_request(subject))
        if newest is not None:
            return newest
        if await next_seq(self._api, self._stream, (subject,), seq) is None:
            return 0
        # The server finds no last message for `>` if the last message of the stream was deleted.
        return (await confirmed_info(self._api, self._stream, self._deadline)).state.last_seq

    # ---- a past state

    async def of_the_past(self, up_to_seq: int) -> int:
        """Collect the state at a sequence that the leader has reached, and return the sequence."""
        few = len(self._filters) <= _FEW_FILTERS
        if not (self._direct and few and await self._collect_past(up_to_seq)):
            await self._read(RangeRead(1, up_to_seq + 1))
        return up_to_seq

    async def _collect_past(self, up_to_seq: int) -> bool:
        """Collect the state by one direct get. Return False if that is not possible."""
        filters = self._filters or (EVERYTHING,)
        while True:
            page = StoredPage()
            end = await self._get_page(multi_request(filters, up_to_seq=up_to_seq), page)
            if end.too_many or end.more or end.mirror:
                return False
            # The response contains the requested bound and not the replica's last sequence, so it
            # does not show whether the replica lags. Ask the leader whether `newest` is the last
            # matching message up to the bound.
            newest = max(page.seqs, default=0)
            if not end.failure and await self._is_last(newest, up_to_seq):
                self._latest.add(page)
                return True
            await self._wait(end.failure or "a replica has not caught up with the leader")

    async def _is_last(self, newest: int, up_to_seq: int) -> bool:
        """Return whether the leader has no matching message after `newest`, up to `up_to_seq`."""
        if newest >= up_to_seq:
            return True
        filters = self._filters or (EVERYTHING,)
        following = await next_seq(self._api, self._stream, filters, newest + 1)
        return following is None or following > up_to_seq

    # ---- one request

    async def _get_page(self, request: bytes, page: StoredPage) -> MultiEnd:
        """Send one direct get for several filters, and add its messages to `page`.

        Returns how the response ended. A lost response is an end with `failure`, not an error.
        """
        transport = self._api.transport
        subject = self._api.subjects.direct_get(self._stream).encode()
        try:
            await transport.ready(self._api.deadline().earlier(self._deadline.at))
            box, reply = await self._inbox.open(subject)
            epoch, token = transport.epoch, reply.encode()
            answer = MultiAnswer(token, self._stream.encode(), page)
            await transport.send(subject, token, b"", request)
            frames = box.take_all()
            count, end = len(frames), answer.take(frames)
            while end is None:
                await self._inbox.wait(box, epoch, self._deadline, lone=count == 1)
                frames = box.take_all()
                count, end = count + len(frames), answer.take(frames)
                if end is None and self._deadline.expired():
                    raise RequestTimeout("the response did not end in time")
        except LOST_RESPONSE as error:
            # An attempt that the deadline cuts short explains less than an earlier failure.
            earlier = self._last_failure if is_cut_short(error, self._deadline) else ""
            return MultiEnd(failure=earlier or str(error))
        if end.missing:
            # There were no responders. If the stream was deleted, this request raises
            # `StreamNotFound`. If the stream is being moved, the request waits for its leader.
            await confirmed_info(self._api, self._stream, self._deadline)
        return end

    async def _wait(self, reason: str) -> None:
        self._last_failure = reason
        if self._deadline.expired():
            raise RequestTimeout(
                f"stream {self._stream}: no snapshot within {self._timeout:g} s;"
                f" last trouble: {reason}"
            )
        self._pauses += 1
        await sleep(BACKOFF.pause(self._pauses))

"""Three ways to read a page of stored messages: by direct get, by a consumer, from the leader.

* Direct get creates nothing on the server and works for every retention policy. It needs
  `allow_direct` and accepts one subject filter.
* An ephemeral consumer needs no `allow_direct` and accepts several filters. Work-queue streams
  refuse it.
* The leader returns one message for each request, from every stream.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from functools import partial
from typing import Any, Final, cast

from attrs import frozen

from js_async.api.api import Api
from js_async.api.consumer_admin import delete_unconfirmed
from js_async.api.inbox import Inbox
from js_async.client.transport import Box
from js_async.runtime.concurrency import shielded
from twinstream.core.read.bulk_page import LEAST, BulkAnswer, DirectBulk, PullBulk
from twinstream.core.read.direct_get import EVERYTHING, next_request
from twinstream.core.read.page import DirectAnswer, PageEnd, PullAnswer, StoredPage
from twinstream.core.read.range_read import Page, RangeRead
from twinstream.core.server_faults.table import MIXED_FILTERS
from twinstream.core.wire.subject_match import crossing, matcher, mixed, widest
from twinstream.errors import (
    ConnectionClosed,
    InvalidResponse,
    JetStreamError,
    MessageNotFound,
    NoResponders,
    PermissionDenied,
    RequestTimeout,
    TwinstreamError,
)
from twinstream.errors.transient import FAILED_REQUEST, is_transient
from twinstream.models.error_codes import INACTIVE_THRESHOLD_EXCEEDED

__all__ = ["ConsumerPages", "DirectPages", "LeaderPages"]

# Time after which the server deletes an idle consumer (ns). After a longer pause, a reader creates
# a new consumer.
_IDLE: Final = 60_000_000_000

# Number of messages of the first page, if the page has no byte limit.
_FEW: Final = 32

# Servers before this version refuse consumers with overlapping filters.
_CROSSING_SINCE: Final = (2, 12, 5)

# Maximum number of messages of a page from the leader. So many requests take some tenths of a
# second.
_LEADER_PAGE: Final = 500
# The value in `LeaderPages._next` for a filter before its first request.
_UNKNOWN: Final[dict[str, Any]] = {"seq": 0}


def _owner(stream: str) -> str:
    """Return the name of a reader for the warning that the program did not close it."""
    return f"{stream}: a read"


@frozen
class _PageRequest:
    """A page that was requested, and its response.

    `token` identifies the frames of the response. `count` is the maximum number of its messages.
    """

    page: Page
    box: Box
    epoch: int
    token: bytes
    count: int
    bulk: BulkAnswer | None

    async def answer(self, inbox: Inbox, into: DirectAnswer | PullAnswer) -> PageEnd:
        """Add the messages of the response to the page of `into`, and return how the page ended."""
        bulk, count = self.bulk, 0
        try:
            while True:
                frames, end = self.box.take_all(), None
                count += len(frames)
                # Check `bulk` after taking the frames. If there are frames after the bulk data, the
                # bulk data is complete now and is added to the page first.
                if bulk is not None and bulk.page is not None:
                    end = into.take_bulk(bulk.page)
                    bulk = None
                end = end or into.take(frames)
                if end is not None:
                    return end
                await inbox.wait(self.box, self.epoch, lone=count == 1)
        finally:
            self.give_up()

    def give_up(self) -> None:
        """Stop receiving in bulk. Later messages arrive as frames."""
        if self.bulk is not None:
            self.bulk.give_up()


class DirectPages:
    """Pages by direct get batches (server 2.11), which any replica or mirror may answer.

    If a mirror responds, the page ends with `PageEnd.mirror`. The server can filter by only one
    subject. With several subjects, the server sends the whole range, and the client filters it.
    """

    def __init__(
        self, api: Api, stream: str, filter_subjects: Sequence[str] = (), *, bulk: bool = False
    ) -> None:
        self._api: Final = api
        self._subject: Final = api.subjects.direct_get(stream).encode()
        self._stream: Final = stream.encode()
        single = len(filter_subjects) == 1
        self._filter: Final = filter_subjects[0] if single else None
        self._matches: Final = None if single else matcher(filter_subjects)
        self._bulk: Final = bulk and self._matches is None
        self._inbox: Final = Inbox(api, _owner(stream))
        self._pending: _PageRequest | None = None

    async def begin(self, ask: Page) -> None:
        """Send the request for a page, which `page` then receives."""
        transport = self._api.transport
        await transport.ready(self._api.deadline())
        box, reply = await self._inbox.open(self._subject)
        body: dict[str, Any] = {"seq": ask.seq, "batch": ask.batch, "max_bytes": ask.max_bytes}
        if self._filter is not None:
            body["next_by_subj"] = self._filter
        token = reply.encode()
        bulk = None
        if self._bulk and ask.batch >= LEAST:
            bulk = DirectBulk(box.sid, token, self._stream)
        pending = _PageRequest(ask, box, transport.epoch, token, ask.batch, bulk)
        if bulk is not None:
            # Before the request, because the response may arrive during the send.
            transport.hold_back(bulk)
        await transport.send(self._subject, pending.token, b"", _json(body))
        self._pending = pending

    async def page(self, ask: Page, read: RangeRead, page: StoredPage) -> PageEnd:
        """Read one page."""
        if self._pending is None or self._pending.page != ask:
            await self.begin(ask)
        pending, self._pending = cast("_PageRequest", self._pending), None
        answer = DirectAnswer(pending.token, self._stream, read, page, self._matches)
        return await pending.answer(self._inbox, answer)

    async def close(self, *, wait: bool = True) -> None:
        """Unsubscribe."""
        if self._pending is not None:
            self._pending.give_up()
            self._pending = None
        await self._inbox.close()


class ConsumerPages:
    """Pages by pull requests to an ephemeral consumer without acknowledgements.

    The server filters. Servers before 2.12.5 refuse overlapping filters. In this case, the server
    sends all messages, and the client filters them.

    With `last_per_subject`, the first consumer delivers only the last message of each subject. Its
    pages are not limited by bytes, because the server may skip a message that exceeds the limit.
    They are limited by the number of messages instead, which is computed from the sizes of earlier
    messages.
    """

    def __init__(
        self,
        api: Api,
        stream: str,
        filter_subjects: Sequence[str] = (),
        *,
        last_per_subject: bool = False,
        headers_only: bool = False,
        bulk: bool = False,
    ) -> None:
        self._api: Final = api
        self._stream: Final = stream
        self._headers_only: Final = headers_only
        self._filters = list(widest(filter_subjects))
        self._matches: Callable[[bytes], object] | None = None
        self._last_per_subject = last_per_subject
        # Whether the current consumer delivers only the last message of each subject.
        self._lists_subjects = False
        # The maximum number of messages per page of such a consumer.
        self._list_batch = _FEW
        self._bulk: Final = bulk
        self._inbox: Final = Inbox(api, _owner(stream))
        self._pending: _PageRequest | None = None
        self._name = ""
        # The name of a consumer that may exist on the server, because the call that creates it
        # failed or was interrupted. Otherwise empty.
        self._unconfirmed_name = ""
        # Whether the next message exceeds the byte limit of a page.
        self._next_exceeds_limit = False

    def __del__(self) -> None:
        # `close` clears the names. They are missing if `__init__` was interrupted.
        name = getattr(self, "_name", "") or getattr(self, "_unconfirmed_name", "")
        if name:
            self._api.transport.part(self._deletion(name).encode())

    async def open(self, seq: int) -> None:
        """Create the consumer, starting at `seq`, unless it exists."""
        await self._api.transport.ready(self._api.deadline())
        if not self._name:
            await self._create(seq)

    async def begin(self, ask: Page) -> None:
        """Send a pull request for a page, which `page` then receives.

        If the reader has no consumer, one is created first.
        """
        transport = self._api.transport
        await self.open(ask.seq)
        subject = self._api.subjects.next_message(self._stream, self._name).encode()
        box, reply = await self._inbox.open(subject)
        body: dict[str, Any] = {"batch": ask.batch, "no_wait": True, "max_bytes": ask.max_bytes}
        if self._lists_subjects:
            body = {"batch": min(ask.batch, self._list_batch), "no_wait": True}
        elif self._next_exceeds_limit:
            body = {"batch": 1, "no_wait": True}
        token = reply[reply.rfind(".") + 1 :].encode()
        bulk = None
        if self._bulk and self._matches is None and body["batch"] >= LEAST:
            bulk = PullBulk(box.sid, reply.encode(), self._name, body["batch"])
            transport.hold_back(bulk)
        pending = _PageRequest(ask, box, transport.epoch, token, body["batch"], bulk)
        await transport.send(subject, reply.encode(), b"", _json(body))
        self._pending = pending

    async def page(self, ask: Page, read: RangeRead, page: StoredPage) -> PageEnd:
        """Read one page. After an error, the next page is read from a new consumer."""
        try:
            if self._pending is None or self._pending.page != ask:
                await self.begin(ask)
            pending, self._pending = cast("_PageRequest", self._pending), None
            answer = PullAnswer(pending.token, read, page, pending.count, self._matches)
            end = await pending.answer(self._inbox, answer)
        except RequestTimeout:
            # The server does not respond, so do not wait for its response to the deletion.
            await self._delete_consumer(wait=False)
            raise
        except TwinstreamError:
            await self._delete_consumer()
            raise
        if end.failure:
            await self._delete_consumer()
        if self._lists_subjects and page.payloads:
            largest = max(map(len, page.payloads)) + max(map(len, page.headers))
            self._list_batch = min(self._list_batch * 4, max(1, ask.max_bytes // max(1, largest)))
        # If no message fitted into the page, the next message exceeds the byte limit. It is then
        # requested alone, without the limit.
        self._next_exceeds_limit = end.more and read.next_seq == ask.seq
        return end

    async def _create(self, seq: int) -> None:
        """Create the consumer that delivers from `seq` on.

        `_unconfirmed_name` keeps the name until the server has confirmed the consumer, so that
        `close` also deletes a consumer whose creation was interrupted.
        """
        transport = self._api.transport
        version, filters = transport.server_info.version_numbers, self._filters
        refuses = version < _CROSSING_SINCE and crossing(filters)
        misses_messages = MIXED_FILTERS.affects(version) and mixed(filters)
        if refuses or misses_messages:
            # Let the server deliver all messages, and filter them here.
            self._matches, self._filters = matcher(self._filters), []
        name = transport.tokens.name()
        config, filters = self._config(name, seq)
        # With `last_per_subject`, the first consumer delivers the last message of each subject. A
        # later consumer delivers all messages from `seq` on.
        self._lists_subjects, self._last_per_subject = self._last_per_subject, False
        target = self._api.subjects.create_consumer(self._stream, name, filters)
        # The request may be repeated, because the name of the consumer is unique.
        body = {"stream_name": self._stream, "config": config}
        if self._unconfirmed_name:
            await self._delete_consumer(wait=False)
        self._unconfirmed_name = name
        try:
            try:
                await self._api.call_raw(target, body, repeatable=True)
            except JetStreamError as error:
                if error.err_code != INACTIVE_THRESHOLD_EXCEEDED:
                    raise
                # The stream's limit is lower. Without a value, the server uses that limit.
                del config["inactive_threshold"]
                await self._api.call_raw(target, body, repeatable=True)
        except NoResponders:
            # An earlier attempt may have created the consumer.
            raise
        except (JetStreamError, PermissionDenied):
            self._unconfirmed_name = ""
            raise
        self._name, self._unconfirmed_name = name, ""

    def _config(self, name: str, seq: int) -> tuple[dict[str, Any], list[str]]:
        """Return the configuration of a consumer that starts at `seq`, and its filters."""
        config: dict[str, Any] = {
            "name": name,
            "description": "range read",
            "deliver_policy": "by_start_sequence",
            "opt_start_seq": seq,
            "ack_policy": "none",
            "mem_storage": True,
            "num_replicas": 1,
            "inactive_threshold": _IDLE,
        }
        filters = self._filters
        if self._headers_only:
            config["headers_only"] = True
        if self._last_per_subject:
            config["deliver_policy"] = "last_per_subject"
            del config["opt_start_seq"]
            filters = filters or [EVERYTHING]
        if len(filters) == 1:
            config["filter_subject"] = filters[0]
        elif filters:
            config["filter_subjects"] = filters
        return config, filters

    async def _delete_consumer(self, *, wait: bool = True) -> None:
        """Delete the consumer and unsubscribe.

        Late messages of this consumer then cannot end up in a page of the next consumer. If `wait`
        is true, wait for the response to the delete request.
        """
        if self._pending is not None:
            self._pending.give_up()
        self._pending = None
        await self._inbox.close()
        confirmed, self._name = self._name, ""
        unconfirmed, self._unconfirmed_name = self._unconfirmed_name, ""
        if not (confirmed or unconfirmed):
            return
        target = self._deletion(confirmed or unconfirmed)
        if not wait:
            # The server may create it after that. Then `close` deletes it.
            self._unconfirmed_name = unconfirmed
            transport = self._api.transport
            sent = transport.write(target.encode(), b"", b"", b"")
            if not sent and transport.is_connected:
                await transport.send(target.encode(), b"", b"", b"")
        elif confirmed:
            await self._request_deletion(target)
        else:
            await delete_unconfirmed(partial(self._request_deletion, target))

    async def _request_deletion(self, target: str) -> bool:
        """Delete a consumer; return whether the server has confirmed it."""
        try:
            await self._api.call_raw(target, None)
        except (*FAILED_REQUEST, ConnectionClosed):
            return False  # already deleted, or the server deletes it when it is idle
        return True

    def _deletion(self, name: str) -> str:
        """Return the subject of the request that deletes a consumer."""
        return self._api.subjects.consumer("DELETE", self._stream, name)

    async def close(self, *, wait: bool = True) -> None:
        """Delete the consumer and unsubscribe, even if the caller is cancelled meanwhile."""
        await shielded(partial(self._delete_consumer, wait=wait))


class LeaderPages:
    """Pages from the leader, with one request for each message: slow, but always possible.

    Used for streams without `allow_direct` if the server refuses a consumer, or if a consumer would
    remove messages.
    """

    def __init__(self, api: Api, stream: str, filter_subjects: Sequence[str] = ()) -> None:
        self._api: Final = api
        self._target: Final = api.subjects.message("GET", stream)
        # Maps each filter to its next message, or to None if there is no further message.
        self._next: Final[dict[str, dict[str, Any] | None]] = {}
        self._filters: Final = tuple(filter_subjects) or (EVERYTHING,)

    async def begin(self, ask: Page) -> None:
        """Do nothing: `page` sends the requests."""

    async def page(self, ask: Page, read: RangeRead, page: StoredPage) -> PageEnd:
        """Read one page."""
        self._next.clear()
        seq = ask.seq
        for _ in range(min(ask.batch, _LEADER_PAGE)):
            try:
                found = await self._first_from(seq)
            except JetStreamError as error:
                if isinstance(error, NoResponders) or not is_transient(error):
                    raise
                return PageEnd(failure=str(error))
            if found is None:
                return PageEnd()
            seq = int(found["seq"]) + 1
            if not read.accept(seq - 1):
                break
            page.add_stored(found)
        return PageEnd(more=True)

    async def _first_from(self, seq: int) -> dict[str, Any] | None:
        """Return the first message from `seq` on that matches a filter, or None."""
        for subject in self._filters:
            known = self._next.get(subject, _UNKNOWN)
            if known is not None and int(known["seq"]) < seq:
                self._next[subject] = await self._request_message(subject, seq)
        found = [each for each in self._next.values() if each is not None]
        return min(found, key=_seq, default=None)

    async def _request_message(self, subject: str, seq: int) -> dict[str, Any] | None:
        try:
            answer = await self._api.call_raw(self._target, next_request(subject, seq))
        except MessageNotFound:
            return None
        found: object = answer.get("message")
        message = cast("dict[str, Any]", found) if isinstance(found, dict) else {}
        if type(message.get("seq")) is not int:
            raise InvalidResponse(
                f"{self._target}: the response is not a stored message: {answer!r:.80}"
            )
        return message

    async def close(self, *, wait: bool = True) -> None:
        """Do nothing: the server keeps no state for these requests."""


def _seq(message: dict[str, Any]) -> int:
    return int(message["seq"])


def _json(body: dict[str, Any]) -> bytes:
    return json.dumps(body, separators=(",", ":")).encode()

# Generated from src/js_async/read/page_sources.py by codegen/twin.py. Edit that file instead.
"""The ways to read a page of stored messages: direct get, an ephemeral consumer, the leader.

Direct get leaves no trace on the server and works for every retention policy, but needs
`allow_direct` and takes one subject filter. A consumer works without `allow_direct` and takes
several filters, but work-queue streams refuse it. The leader gives one message at a time, always.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from typing import Any, Final, cast

from attrs import frozen

from twinstream.core.read.bulk_page import LEAST, BulkAnswer, DirectBulk, PullBulk
from twinstream.core.read.direct_get import EVERYTHING, next_request
from twinstream.errors import (
    BadAnswer,
    ConnectionLost,
    JetStreamError,
    MessageNotFound,
    NoResponders,
    RequestTimeout,
    TwinstreamError,
)
from twinstream.core.read.range_read import Page, RangeRead
from twinstream.core.read.page import DirectAnswer, PageEnd, PullAnswer, StoredPage
from twinstream.core.wire.subject_match import crossing, matcher, widest
from twinstream.models.error_codes import INACTIVE_THRESHOLD_EXCEEDED
from js_sync.api.api import Api
from js_sync.api.inbox import Inbox
from js_sync.client.transport import Box

__all__ = ["ConsumerPages", "DirectPages", "LeaderPages"]

# How long the server keeps a consumer that nobody pulls from, in nanoseconds. A reader that is
# held up longer gets a new one.
_IDLE: Final = 60_000_000_000

# How many messages the first page holds where pages have no limit of bytes.
_FEW: Final = 32

# Before, a consumer took no filters that may match the same subject.
_CROSSING_SINCE: Final = (2, 12, 5)

# Messages of a page that the leader gives one by one: some tenths of a second of round trips.
_LEADER_PAGE: Final = 500
_NO_LEADER: Final = 503
_NOT_DELETED: Final = (ConnectionLost, JetStreamError, NoResponders, RequestTimeout)
_UNKNOWN: Final[dict[str, Any]] = {"seq": 0}


@frozen
class _Asked:
    """A page that was asked for; `token` names it, `count` is how many messages it may hold."""

    page: Page
    box: Box
    epoch: int
    token: bytes
    count: int
    bulk: BulkAnswer | None

    def answer(self, inbox: Inbox, into: DirectAnswer | PullAnswer) -> PageEnd:
        """Move what comes into a page, to its end."""
        bulk = self.bulk
        try:
            while True:
                frames, end = self.box.take_all(), None
                # Looked at behind the frames: what came in bulk came before the last of them.
                if bulk is not None and bulk.page is not None:
                    end = into.take_bulk(bulk.page)
                    bulk = None
                end = end or into.take(frames)
                if end is not None:
                    return end
                inbox.wait(self.box, self.epoch)
        finally:
            self.give_up()

    def give_up(self) -> None:
        """Let whatever still comes go the ordinary way."""
        if self.bulk is not None:
            self.bulk.give_up()


class DirectPages:
    """Pages by direct get batches (server 2.11); any replica answers, or a mirror, which is told.

    The server filters by one subject; with several, the whole range comes and is filtered here.
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
        self._inbox: Final = Inbox(api)
        self._asked: _Asked | None = None

    def begin(self, ask: Page) -> None:
        """Ask for a page."""
        transport = self._api.transport
        transport.ready(self._api.deadline())
        box, reply = self._inbox.open(self._subject)
        body: dict[str, Any] = {"seq": ask.seq, "batch": ask.batch, "max_bytes": ask.max_bytes}
        if self._filter is not None:
            body["next_by_subj"] = self._filter
        token = reply.encode()
        bulk = None
        if self._bulk and ask.batch >= LEAST:
            bulk = DirectBulk(box.sid, token, self._stream)
        asked = _Asked(ask, box, transport.epoch, token, ask.batch, bulk)
        if bulk is not None:
            transport.hold_back(bulk)
        transport.send(self._subject, asked.token, b"", _json(body))
        self._asked = asked

    def page(self, ask: Page, read: RangeRead, page: StoredPage) -> PageEnd:
        """Read one page."""
        if self._asked is None or self._asked.page != ask:
            self.begin(ask)
        asked, self._asked = cast("_Asked", self._asked), None
        answer = DirectAnswer(asked.token, self._stream, read, page, self._matches)
        return asked.answer(self._inbox, answer)

    def close(self) -> None:
        """Unsubscribe."""
        if self._asked is not None:
            self._asked.give_up()
        self._inbox.close()


class ConsumerPages:
    """Pages by pulls of an ephemeral consumer that wants no acknowledgements.

    The server filters. Where it refuses filters that cross, all comes and is filtered here.

    With `last_per_subject` the pages have no limit of bytes: of a stream that keeps more than one
    message of each subject, servers 2.11 to 2.15 forget a message that does not fit into a request.
    Their number follows from the sizes so far.
    """

    def __init__(
        self,
        api: Api,
        stream: str,
        filter_subjects: Sequence[str] = (),
        *,
        last_per_subject: bool = False,
        bulk: bool = False,
    ) -> None:
        self._api: Final = api
        self._stream: Final = stream
        self._filters = list(widest(filter_subjects))
        self._matches: Callable[[bytes], object] | None = None
        self._last_per_subject = last_per_subject
        # Whether the present consumer has that policy, and how many messages a page of it may hold.
        self._has_list = False
        self._few = _FEW
        self._bulk: Final = bulk
        self._inbox: Final = Inbox(api)
        self._asked: _Asked | None = None
        self._name = ""
        self._whole = False

    def open(self, seq: int) -> None:
        """Make the consumer, unless it is there."""
        self._api.transport.ready(self._api.deadline())
        if not self._name:
            self._create(seq)

    def begin(self, ask: Page) -> None:
        """Ask for a page; a consumer that is gone is made anew."""
        transport = self._api.transport
        self.open(ask.seq)
        subject = self._api.subjects.next_message(self._stream, self._name).encode()
        box, reply = self._inbox.open(subject)
        body: dict[str, Any] = {"batch": ask.batch, "no_wait": True, "max_bytes": ask.max_bytes}
        if self._has_list:
            body = {"batch": min(ask.batch, self._few), "no_wait": True}
        elif self._whole:
            body = {"batch": 1, "no_wait": True}
        token = reply[reply.rfind(".") + 1 :].encode()
        bulk = None
        if self._bulk and self._matches is None and body["batch"] >= LEAST:
            bulk = PullBulk(box.sid, reply.encode(), self._name, body["batch"])
            transport.hold_back(bulk)
        asked = _Asked(ask, box, transport.epoch, token, body["batch"], bulk)
        transport.send(subject, reply.encode(), b"", _json(body))
        self._asked = asked

    def page(self, ask: Page, read: RangeRead, page: StoredPage) -> PageEnd:
        """Read one page."""
        try:
            if self._asked is None or self._asked.page != ask:
                self.begin(ask)
            asked, self._asked = cast("_Asked", self._asked), None
            answer = PullAnswer(asked.token, read, page, asked.count, self._matches)
            end = asked.answer(self._inbox, answer)
        except RequestTimeout:
            # A server that fell silent would not answer this either, within another timeout.
            self._drop(wait=False)
            raise
        except TwinstreamError:
            self._drop()
            raise
        if end.failure:
            self._drop()
        if self._has_list and page.payloads:
            largest = max(map(len, page.payloads)) + max(map(len, page.headers))
            self._few = min(self._few * 4, max(1, ask.max_bytes // max(1, largest)))
        # Nothing fitted into the bytes: the next message is larger, so ask for it without a limit.
        self._whole = end.more and read.next_seq == ask.seq
        return end

    def _create(self, seq: int) -> None:
        transport = self._api.transport
        if transport.server_info.version_numbers < _CROSSING_SINCE and crossing(self._filters):
            self._matches, self._filters = matcher(self._filters), []
        name = transport.tokens.name()
        config, filters = self._config(name, seq)
        # Once: a consumer that takes its place gives all that came since, which is more.
        self._has_list, self._last_per_subject = self._last_per_subject, False
        target = self._api.subjects.create_consumer(self._stream, name, filters)
        # Of a name that nobody else has.
        body = {"stream_name": self._stream, "config": config}
        try:
            self._api.call_raw(target, body, repeatable=True)
        except JetStreamError as error:
            if error.err_code != INACTIVE_THRESHOLD_EXCEEDED:
                raise
            # The stream allows less, which is what a consumer of it has by default.
            del config["inactive_threshold"]
            self._api.call_raw(target, body, repeatable=True)
        self._name = name

    def _config(self, name: str, seq: int) -> tuple[dict[str, Any], list[str]]:
        """Return the configuration of a consumer that begins at a sequence, and its filters."""
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
        if self._last_per_subject:
            config["deliver_policy"] = "last_per_subject"
            del config["opt_start_seq"]
            filters = filters or [EVERYTHING]
        if len(filters) == 1:
            config["filter_subject"] = filters[0]
        elif filters:
            config["filter_subjects"] = filters
        return config, filters

    def _drop(self, *, wait: bool = True) -> None:
        """Forget the consumer; late deliveries of it must not reach the next one's pages."""
        if self._asked is not None:
            self._asked.give_up()
        self._asked = None
        self._inbox.close()
        name, self._name = self._name, ""
        if not name:
            return
        target = self._api.subjects.consumer("DELETE", self._stream, name)
        if not wait:
            self._api.transport.try_send(target.encode(), b"", b"", b"")
            return
        try:
            self._api.call_raw(target, None)
        except _NOT_DELETED:
            pass  # gone already, or it goes by itself when idle

    def close(self) -> None:
        """Delete the consumer and unsubscribe."""
        self._drop()


class LeaderPages:
    """Pages from the leader, a request for each message: slow, but every stream has it.

    For work queues without `allow_direct`, where a consumer would take messages away.
    """

    def __init__(self, api: Api, stream: str, filter_subjects: Sequence[str] = ()) -> None:
        self._api: Final = api
        self._target: Final = api.subjects.message("GET", stream)
        # By filter, the next message that it has; None when it has none.
        self._next: Final[dict[str, dict[str, Any] | None]] = {}
        self._filters: Final = tuple(filter_subjects) or (EVERYTHING,)

    def begin(self, ask: Page) -> None:
        """Do nothing: there is no more than one message to ask for."""

    def page(self, ask: Page, read: RangeRead, page: StoredPage) -> PageEnd:
        """Read one page."""
        self._next.clear()
        seq = ask.seq
        for _ in range(min(ask.batch, _LEADER_PAGE)):
            try:
                found = self._after(seq)
            except JetStreamError as error:
                if error.code != _NO_LEADER:
                    raise
                return PageEnd(failure=str(error))
            if found is None:
                return PageEnd()
            seq = int(found["seq"]) + 1
            if not read.accept(seq - 1):
                break
            page.add_stored(found)
        return PageEnd(more=True)

    def _after(self, seq: int) -> dict[str, Any] | None:
        """Return the first message at or after a sequence that a filter lets pass."""
        for subject in self._filters:
            known = self._next.get(subject, _UNKNOWN)
            if known is not None and int(known["seq"]) < seq:
                self._next[subject] = self._ask(subject, seq)
        found = [each for each in self._next.values() if each is not None]
        return min(found, key=_seq, default=None)

    def _ask(self, subject: str, seq: int) -> dict[str, Any] | None:
        try:
            answer = self._api.call_raw(self._target, next_request(subject, seq))
        except MessageNotFound:
            return None
        found: object = answer.get("message")
        message = cast("dict[str, Any]", found) if isinstance(found, dict) else {}
        if type(message.get("seq")) is not int:
            raise BadAnswer(f"{self._target}: the answer is not a stored message: {answer!r:.80}")
        return message

    def close(self) -> None:
        """Do nothing: the server keeps nothing."""


def _seq(message: dict[str, Any]) -> int:
    return int(message["seq"])


def _json(body: dict[str, Any]) -> bytes:
    return json.dumps(body, separators=(",", ":")).encode()

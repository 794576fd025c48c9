# Generated from src/js_async/_page_sources.py by codegen/twin.py. Edit that file instead.
"""The two ways to read a page of stored messages: direct get, and an ephemeral consumer.

Direct get leaves no trace on the server and works for every retention policy, but needs
`allow_direct` and takes one subject filter. A consumer works without `allow_direct` and takes
several filters, but work-queue streams refuse it.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any, Final

from js_core.deadline import Deadline
from js_core.errors import ConnectionLost, ConsumerNotFound, RequestTimeout, TwinstreamError
from js_core.range_read import Page, RangeRead
from js_core.stored_page import DirectAnswer, PageEnd, PullAnswer, StoredPage
from js_core.subject_match import matcher
from js_sync._api import Api
from js_sync._transport import Box

__all__ = ["ConsumerPages", "DirectPages"]

# Silence in the middle of a page that means it is lost, in seconds. The server sends a page
# without a break; the default of a JetStream request is the same.
_SILENCE: Final = 5.0

# How long the server keeps a consumer that nobody pulls from, in nanoseconds. A reader that is
# held up longer gets a new one.
_IDLE: Final = 60_000_000_000


class _Inbox:
    """One subscription for all pages of a reader, a token for each page."""

    def __init__(self, api: Api) -> None:
        self._api: Final = api
        self._prefix = ""
        self._box: Box | None = None

    def open(self) -> tuple[Box, str]:
        """Return the mailbox, and the reply subject of the next page."""
        if self._box is None:
            self._prefix = self._api.transport.tokens.inbox()
            self._box = self._api.transport.open_mailbox(f"{self._prefix}.*".encode())
        return self._box, f"{self._prefix}.{self._api.transport.tokens.next()}"

    def wait(self, box: Box, epoch: int) -> None:
        """Return when frames came; raises when the link broke or the server fell silent."""
        transport = self._api.transport
        came = transport.wait(box.signal, Deadline.after(_SILENCE))
        if transport.epoch != epoch or not transport.is_connected:
            raise ConnectionLost("the link broke in the middle of a page")
        if not came:
            raise RequestTimeout(f"a page fell silent for {_SILENCE:g} s")

    def close(self) -> None:
        """Unsubscribe."""
        if self._box is not None:
            self._api.transport.close_mailbox(self._box)
            self._box = None


class DirectPages:
    """Pages by direct get batches (server 2.11); any replica answers.

    The server filters by one subject; with several, the whole range comes and is filtered here.
    """

    def __init__(self, api: Api, stream: str, filter_subjects: Sequence[str] = ()) -> None:
        self._api: Final = api
        self._subject: Final = api.subjects.direct_get(stream).encode()
        single = len(filter_subjects) == 1
        self._filter: Final = filter_subjects[0] if single else None
        self._matches: Final = None if single else matcher(filter_subjects)
        self._inbox: Final = _Inbox(api)

    def page(self, ask: Page, read: RangeRead, page: StoredPage) -> PageEnd:
        """Read one page."""
        transport = self._api.transport
        transport.ready(self._api.deadline())
        box, reply = self._inbox.open()
        body: dict[str, Any] = {"seq": ask.seq, "batch": ask.batch, "max_bytes": ask.max_bytes}
        if self._filter is not None:
            body["next_by_subj"] = self._filter
        epoch, token = transport.epoch, reply.encode()
        transport.send(self._subject, token, b"", _json(body))
        answer = DirectAnswer(token, read, page, self._matches)
        while True:
            end = answer.take(box.take_all())
            if end is not None:
                return end
            self._inbox.wait(box, epoch)

    def close(self) -> None:
        """Unsubscribe."""
        self._inbox.close()


class ConsumerPages:
    """Pages by pulls of an ephemeral consumer that wants no acknowledgements."""

    def __init__(self, api: Api, stream: str, filter_subjects: Sequence[str] = ()) -> None:
        self._api: Final = api
        self._stream: Final = stream
        self._filters: Final = list(filter_subjects)
        self._inbox: Final = _Inbox(api)
        self._name = ""
        self._whole = False

    def page(self, ask: Page, read: RangeRead, page: StoredPage) -> PageEnd:
        """Read one page; a consumer that is gone is made anew at the next one."""
        self._api.transport.ready(self._api.deadline())
        if not self._name:
            self._create(ask.seq)
        try:
            end = self._pull(ask, read, page)
        except TwinstreamError:
            self._drop()
            raise
        if end.failure:
            self._drop()
        # Nothing fitted into the bytes: the next message is larger, so ask for it without a limit.
        self._whole = end.more and not page.seqs
        return end

    def _pull(self, ask: Page, read: RangeRead, page: StoredPage) -> PageEnd:
        transport = self._api.transport
        box, reply = self._inbox.open()
        body: dict[str, Any] = {"batch": ask.batch, "no_wait": True, "max_bytes": ask.max_bytes}
        if self._whole:
            body = {"batch": 1, "no_wait": True}
        subject = self._api.subjects.next_message(self._stream, self._name).encode()
        epoch, token = transport.epoch, reply[reply.rfind(".") + 1 :].encode()
        transport.send(subject, reply.encode(), b"", _json(body))
        answer = PullAnswer(token, read, page, body["batch"])
        while True:
            end = answer.take(box.take_all())
            if end is not None:
                return end
            self._inbox.wait(box, epoch)

    def _create(self, seq: int) -> None:
        name = self._api.transport.tokens.name()
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
        if len(self._filters) == 1:
            config["filter_subject"] = self._filters[0]
        elif self._filters:
            config["filter_subjects"] = self._filters
        target = self._api.subjects.create_consumer(self._stream, name, self._filters)
        self._api.call_raw(target, {"stream_name": self._stream, "config": config})
        self._name = name

    def _drop(self) -> None:
        """Forget the consumer; late deliveries of it must not reach the next one's pages."""
        self._inbox.close()
        name, self._name = self._name, ""
        if name:
            target = self._api.subjects.consumer("DELETE", self._stream, name)
            try:
                self._api.call_raw(target, None)
            except (ConsumerNotFound, ConnectionLost, RequestTimeout):
                pass  # gone already, or it goes by itself when idle

    def close(self) -> None:
        """Delete the consumer and unsubscribe."""
        self._drop()


def _json(body: dict[str, Any]) -> bytes:
    return json.dumps(body, separators=(",", ":")).encode()

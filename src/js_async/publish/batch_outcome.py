"""Find out whether an atomic batch was stored, if its commit got no response."""

from __future__ import annotations

from typing import Any, Final

from js_async.api import pager
from js_async.api.api import Api
from js_async.runtime.concurrency import sleep
from twinstream.core.deadline import Deadline, monotonic
from twinstream.core.publish.atomic_batch import BatchSheet, commit_seq, doubt_of_absence
from twinstream.core.wire.pub_ack import read_pub_ack
from twinstream.errors import (
    ConnectionLost,
    JetStreamError,
    MessageNotFound,
    NoResponders,
    TwinstreamError,
)
from twinstream.models import (
    PubAck,
    StreamInfo,
    StreamMessageGetResponse,
    Timestamp,
)
from twinstream.records.headers import Headers

__all__ = ["BatchTrace"]

# Nanoseconds by which the server's clock may have been set back since the batch began.
_MARGIN: Final = 5_000_000_000
_PAUSE: Final = 0.1


class BatchTrace:
    """The search for a batch whose commit got no response.

    The search first sends a message out of sequence, which closes the batch on the server. The
    server refuses a commit that arrives later. If the stream does not contain the batch then, it
    can no longer store it.
    """

    def __init__(self, api: Api, sheet: BatchSheet, subject: str, began: float) -> None:
        self._api: Final = api
        self._sheet: Final = sheet
        self._subject: Final = subject
        self._began: Final = began
        self.is_absent = False
        """Whether the batch is certainly not stored."""
        self.is_missing = False
        """Whether the stream was read and did not contain the batch."""
        self.found = "nothing was found out"
        """The result of the search, as text for error messages."""

    async def find(self, deadline: Deadline) -> PubAck | None:
        """Return the acknowledgement of the batch, or None if the batch was not found.

        If the result is None, `is_absent` and `found` describe what is known. If a request fails,
        its error is not raised; `found` contains the text of the error.
        """
        while not deadline.expired():
            try:
                ack = await self._find_once(deadline)
                if ack is not None or self.is_absent:
                    return ack
            except (NoResponders, ConnectionLost) as error:
                self.found = f"the stream could not be read: {error}"
            except TwinstreamError as error:
                self.found = f"the stream could not be read: {error}"
                return None
            await sleep(min(_PAUSE, deadline.remaining()))
        return None

    async def _find_once(self, deadline: Deadline) -> PubAck | None:
        """Close the batch on the server, and search the stream for its last message.

        Returns the batch's acknowledgement, or None if the stream does not contain the batch.
        """
        await self._close_on_server(deadline)
        name = await self._stream(deadline)
        info = await self._api.stream_info(name, deadline)
        since = self._since(info)
        seq = await self._search(info, since, deadline)
        if seq:
            return PubAck(stream=name, seq=seq, batch=self._sheet.id, count=self._sheet.count)
        doubt = doubt_of_absence(info, since)
        self.is_missing = True
        self.is_absent = not doubt
        self.found = f"stream {name} does not contain it" + (f", but {doubt}" if doubt else "")
        return None

    async def _close_on_server(self, deadline: Deadline) -> None:
        await self._api.transport.ready(deadline)
        drop = self._sheet.drop()
        frame = await self._api.transport.ask(self._subject, drop, b"", deadline)
        try:
            read_pub_ack(frame, self._subject)
        except JetStreamError:
            return  # the server refused the message out of sequence, so the batch is closed

    async def _stream(self, deadline: Deadline) -> str:
        timeout = deadline.remaining()
        async for name in pager.StreamNames(self._api, self._subject, timeout):
            return name
        raise NoResponders(f"{self._subject}: no stream has this subject now")

    def _since(self, info: StreamInfo) -> Timestamp:
        """Return a time of the server's clock at which the batch was certainly not sent yet."""
        now = info.ts.ns if info.ts is not None else 0
        return Timestamp.from_ns(now - int((monotonic() - self._began) * 1e9) - _MARGIN)

    async def _search(self, info: StreamInfo, since: Timestamp, deadline: Deadline) -> int:
        """Return the sequence of the batch's last message, or 0 if the stream does not contain it.

        Only messages stored at `since` or later are read.
        """
        target = self._api.subjects.message("GET", info.config.name or "")
        subject = self._subject if info.config.subject_transform is None else ">"
        body: dict[str, Any] = {"start_time": since.rfc3339(), "next_by_subj": subject}
        while True:
            try:
                answer = await self._api.call(target, body, StreamMessageGetResponse, deadline)
            except MessageNotFound:
                return 0
            stored = answer.message
            if stored is None:
                return 0
            headers = Headers.parse(stored.hdrs) if stored.hdrs else Headers()
            if commit_seq(headers, self._sheet.id) == self._sheet.count:
                return stored.seq
            body = {"seq": stored.seq + 1, "next_by_subj": subject}

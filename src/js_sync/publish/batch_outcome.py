# Generated from src/js_async/publish/batch_outcome.py by codegen/twin.py. Edit that file instead.
"""Finding out what became of a batch whose commit was not answered, without sending it again."""

from __future__ import annotations

from typing import Any, Final

from twinstream.core.publish.atomic_batch import BatchSheet, commit_seq, doubt_of_absence
from twinstream.core.deadline import Deadline, monotonic
from twinstream.errors import (
    ConnectionLost,
    JetStreamError,
    MessageNotFound,
    NoResponders,
    TwinstreamError,
)
from twinstream.core.wire.headers import Headers
from twinstream.core.wire.pub_ack import read_pub_ack
from twinstream.models import (
    PubAck,
    StreamInfo,
    StreamMessageGetResponse,
    Timestamp,
)
from js_sync.api import pager as _paging
from js_sync.api.api import Api
from js_sync.runtime.concurrency import sleep

__all__ = ["BatchTrace"]

# How far the server's clock may have been set back meanwhile, in nanoseconds.
_MARGIN: Final = 5_000_000_000
_PAUSE: Final = 0.1


class BatchTrace:
    """Shuts a batch on the server, then looks for it in the stream.

    A message out of sequence is sent first: once the server has answered it, a commit that is
    still on its way comes too late. So what the stream does not hold then, it never will.
    """

    def __init__(self, api: Api, sheet: BatchSheet, subject: str, began: float) -> None:
        self._api: Final = api
        self._sheet: Final = sheet
        self._subject: Final = subject
        self._began: Final = began
        self.is_absent = False
        """Whether the batch is certainly not stored."""
        self.found = "nothing was found out"
        """What came out, as words for a person."""

    def find(self, deadline: Deadline) -> PubAck | None:
        """Return the acknowledgement of a batch that is stored; None when it was not found."""
        while not deadline.expired():
            try:
                ack = self._look(deadline)
                if ack is not None or self.is_absent:
                    return ack
            except (NoResponders, ConnectionLost) as error:
                self.found = f"the stream could not be read: {error}"
            except TwinstreamError as error:
                self.found = f"the stream could not be read: {error}"
                return None
            sleep(min(_PAUSE, deadline.remaining()))
        return None

    def _look(self, deadline: Deadline) -> PubAck | None:
        self._shut(deadline)
        name = self._stream(deadline)
        info = self._api.stream_info(name, deadline)
        since = self._since(info)
        seq = self._search(info, since, deadline)
        if seq:
            return PubAck(stream=name, seq=seq, batch=self._sheet.id, count=self._sheet.count)
        doubt = doubt_of_absence(info, since)
        self.is_absent = not doubt
        self.found = f"stream {name} does not hold it" + (f", but {doubt}" if doubt else "")
        return None

    def _shut(self, deadline: Deadline) -> None:
        self._api.transport.ready(deadline)
        drop = self._sheet.drop()
        frame = self._api.transport.ask(self._subject, drop, b"", deadline)
        try:
            read_pub_ack(frame, self._subject)
        except JetStreamError:
            return  # what the server says to a message out of sequence

    def _stream(self, deadline: Deadline) -> str:
        timeout = deadline.remaining()
        for name in _paging.StreamNames(self._api, self._subject, timeout):
            return name
        raise NoResponders(f"{self._subject}: no stream has this subject now")

    def _since(self, info: StreamInfo) -> Timestamp:
        """Return a time before the commit, by the clock of the server."""
        now = info.ts.ns if info.ts is not None else 0
        return Timestamp.from_ns(now - int((monotonic() - self._began) * 1e9) - _MARGIN)

    def _search(self, info: StreamInfo, since: Timestamp, deadline: Deadline) -> int:
        """Return the sequence of the batch's last message, 0 when the stream does not hold it."""
        target = self._api.subjects.message("GET", info.config.name or "")
        subject = self._subject if info.config.subject_transform is None else ">"
        body: dict[str, Any] = {"start_time": since.rfc3339(), "next_by_subj": subject}
        while True:
            try:
                answer = self._api.call(target, body, StreamMessageGetResponse, deadline)
            except MessageNotFound:
                return 0
            stored = answer.message
            if stored is None:
                return 0
            headers = Headers.parse(stored.hdrs) if stored.hdrs else Headers()
            if commit_seq(headers, self._sheet.id) == self._sheet.count:
                return stored.seq
            body = {"seq": stored.seq + 1, "next_by_subj": subject}

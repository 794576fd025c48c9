"""The answer of a page in bulk: its bytes are kept together and cut in one go when all are here.

Theory of operation
-------------------
A session shows what arrives to the bulk answer first. From the first message of the page on it
keeps all bytes, until it has seen the last message (it counts, without parsing) or a status of the
server (the end of a direct get, an empty pull, a failure). Then the messages are cut into columns
(`twinstream.core.read.arrow_cut`), and what stands behind them, the status for one, is the parser's.

Bytes that cannot be cut like that go to the parser as they came, which makes of them what it
always makes: nothing is lost, the page only costs more. What arrives amid a page waits for its
end; a connection that reads in bulk should therefore do nothing else.
"""

from __future__ import annotations

from typing import Final

from twinstream.core.read.arrow_page import ArrowPage
from twinstream.core.base.digits import natural
from twinstream.core.read.arrow_cut import cut_direct, cut_pull

__all__ = ["LEAST", "BulkAnswer", "DirectBulk", "PullBulk"]

#: Messages from which a page is worth it: the calls cost about as much as so many frames.
LEAST: Final = 500

#: The most that is kept: four times the bytes of a page, for messages that are mostly headers.
_MOST: Final = 64 * 1024 * 1024

# Longer than a mark and the numbers behind it.
_SEAM: Final = 512

_STATUS: Final = b"\r\nNATS/1.0 "


class BulkAnswer:
    """Bytes of one page. ``mark`` stands in the control line of each of its messages."""

    def __init__(self, sid: bytes, reply: bytes, mark: bytes) -> None:
        self.sid: Final = sid
        self.page: ArrowPage | None = None
        self.is_over = False
        self.size = 0
        """How much is kept (bytes)."""
        # How a status that answers the request begins.
        self._own: Final = b"HMSG %b %b " % (reply, sid)
        self._mark: Final = mark
        self._pieces: list[bytes] = []
        self._seam = b""
        self._given_up = False

    def give_up(self) -> None:
        """Leave everything to the parser: what is kept, as soon as the next bytes come."""
        self._given_up = True

    def take(self, data: bytes) -> bytes:
        """Take the next bytes and return those that are for the parser."""
        before = b""
        if not (self._pieces or self._given_up):
            start = self._begin(data)
            if start < 0:
                # Something else, or a status without a message.
                self.is_over = self._own in data or self._mark in data
                return data
            # What stands before the page, the last word on an earlier one mostly.
            before, data = data[:start], data[start:]
        self._pieces.append(data)
        self.size += len(data)
        if self._given_up or self.size > _MOST:
            return before + self._finish(0)
        end = self._end(data)
        self._seam = (self._seam + data)[-_SEAM:]
        return before if end is None else before + self._finish(end)

    def _begin(self, data: bytes) -> int:
        """Return where the line of the first message begins, -1 when there is none."""
        place = data.find(self._mark)
        start = data.rfind(b"\n", 0, place + 1) + 1
        return start if place >= 0 and data.startswith((b"MSG ", b"HMSG "), start) else -1

    def _finish(self, end: int) -> bytes:
        """Cut the messages before ``end`` and return what is behind them."""
        self.is_over = True
        data = self._joined()
        self._pieces.clear()
        if end:
            self.page = self._cut(data, end)
        return data if self.page is None else data[end:]

    def _joined(self) -> bytes:
        if len(self._pieces) > 1:
            self._pieces = [b"".join(self._pieces)]
        return self._pieces[0]

    def _count(self, what: bytes, data: bytes) -> int:
        """Return how often a text begins in what is new, or begins in the seam and ends there."""
        edge = len(what) - 1
        return data.count(what) + (self._seam[-edge:] + data[:edge]).count(what)

    def _end(self, data: bytes) -> int | None:
        """Return where the messages end, None as long as more are to come."""
        raise NotImplementedError

    def _cut(self, data: bytes, end: int) -> ArrowPage | None:
        raise NotImplementedError


class DirectBulk(BulkAnswer):
    """The answer of a direct get batch of ``stream``; its end is always a status."""

    def __init__(self, sid: bytes, reply: bytes, stream: bytes) -> None:
        super().__init__(sid, reply, b"HMSG %b %b " % (reply, sid))
        self._stream: Final = stream

    def _end(self, data: bytes) -> int | None:
        if not self._count(_STATUS, data) or not self._is_status(self._seam + data):
            return None
        return self._joined().rfind(self._own)

    def _is_status(self, recent: bytes) -> bool:
        """Tell a status from a payload that holds the text of one."""
        start = recent.rfind(self._own)
        sizes, found, _ = recent[start + len(self._own) :].partition(_STATUS)
        return start >= 0 and bool(found) and sizes.replace(b" ", b"").isdigit()

    def _cut(self, data: bytes, end: int) -> ArrowPage | None:
        return cut_direct(data, end, self._mark, self._stream)


class PullBulk(BulkAnswer):
    """The answer of a pull of ``batch`` messages; a full one has no status at its end."""

    def __init__(self, sid: bytes, reply: bytes, consumer: str, batch: int) -> None:
        # The name was drawn at random for this read.
        super().__init__(sid, reply, b".%b." % consumer.encode())
        self._left = batch
        self._needed = 0
        # Whether the last message's line has begun and not ended: it is looked at again at its end.
        self._in_line = False

    def _end(self, data: bytes) -> int | None:
        if self._count(self._own, data):
            return self._joined().rfind(self._own)
        self._left -= self._count(self._mark, data)
        if self._left > 0 or self.size < self._needed:
            return None
        if self._in_line and b"\n" not in data:
            return None
        return self._last_end(self._joined())

    def _last_end(self, data: bytes) -> int | None:
        """Return where the last message ends, None when it is not whole yet."""
        line = data.rfind(self._mark)
        end = data.find(b"\r\n", line)
        self._in_line = end < 0
        if self._in_line:
            return None
        size = data[data.rfind(b" ", line, end) + 1 : end]
        # What is no number is refused by the parser.
        number = natural(size)
        self._needed = 0 if number is None else end + 4 + number
        return self._needed if self._needed <= len(data) else None

    def _cut(self, data: bytes, end: int) -> ArrowPage | None:
        return cut_pull(data, end, self._mark, self.sid)

"""Receive a page of stored messages in bulk: buffer its bytes, then cut all of them at once.

Theory of operation
-------------------
A session passes received bytes to a `BulkAnswer` before it parses them. The `BulkAnswer` buffers
all bytes from the first message of the page to the last one, which it finds by counting without
parsing. A status of the server (the end of a direct get, an empty pull, a failure) also ends the
page. Then the `BulkAnswer` cuts the messages into columns (`twinstream.core.read.arrow_cut`) and
returns the bytes after them, such as the status, for the parser.

If it cannot cut the bytes, it returns all of them for the parser. Nothing is lost, the page only
takes longer. Messages of other subscriptions that arrive during a page are delayed to its end, so
a connection that reads in bulk should be used for nothing else.
"""

from __future__ import annotations

from typing import Final

from twinstream.core.hooks import HOOKS, reached
from twinstream.core.read.arrow_cut import cut_direct, cut_pull
from twinstream.core.read.arrow_page import ArrowPage
from twinstream.models.digits import natural

__all__ = ["LEAST", "BulkAnswer", "DirectBulk", "PullBulk"]

LEAST: Final = 500
"""Minimum number of messages for a page in bulk.

The fixed cost of such a page is about the cost of parsing this many frames.
"""

# Maximum number of buffered bytes. This is four times `PAGE_BYTES`, for pages whose bytes are
# mostly headers.
_MAX_BYTES: Final = 64 * 1024 * 1024

# Number of bytes at the end of earlier reads that are searched again, because a text may be split
# between two reads. The longest such text, a mark with the numbers after it, is shorter.
_SEAM: Final = 512

_STATUS: Final = b"\r\nNATS/1.0 "


class BulkAnswer:
    """The response to a request for one page, on the subject `reply` of the subscription `sid`.

    `mark` is part of the control line of each message. `page` has the messages once `is_over` is
    true. It stays None if there are no messages or if they could not be cut.
    """

    def __init__(self, sid: bytes, reply: bytes, mark: bytes) -> None:
        self.sid: Final = sid
        self.page: ArrowPage | None = None
        self.is_over = False
        self.size = 0
        """The number of buffered bytes."""
        # The start of the control line of a status. Messages of a direct get begin like this, too.
        self._own: Final = b"HMSG %b %b " % (reply, sid)
        self._mark: Final = mark
        self._pieces: list[bytes] = []
        self._seam = b""
        self._given_up = False

    def give_up(self) -> None:
        """Stop buffering: the next `take` returns all buffered bytes for the parser."""
        self._given_up = True

    def take(self, data: bytes) -> bytes:
        """Process received bytes and return those that the parser is to process."""
        before = b""
        if not (self._pieces or self._given_up):
            start = self._begin(data)
            if start < 0:
                # Either the page has not begun, or a status ended it without any message, or the
                # mark is not in a control line. In the last two cases, there is nothing to buffer.
                self.is_over = self._own in data or self._mark in data
                return data
            # The bytes before the page are usually the final status of an earlier page.
            before, data = data[:start], data[start:]
        self._pieces.append(data)
        self.size += len(data)
        if self._given_up or self.size > _MAX_BYTES:
            return before + self._finish(0)
        end = self._end(data)
        self._seam = (self._seam + data)[-_SEAM:]
        return before if end is None else before + self._finish(end)

    def _begin(self, data: bytes) -> int:
        """Return the offset of the control line of the first message, -1 if there is none."""
        place = data.find(self._mark)
        start = data.rfind(b"\n", 0, place + 1) + 1
        return start if place >= 0 and data.startswith((b"MSG ", b"HMSG "), start) else -1

    def _finish(self, end: int) -> bytes:
        """Cut the messages before `end`; return the bytes for the parser, all if the cut fails."""
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
        """Count `what` in new data, including occurrences that begin in the bytes before it."""
        edge = len(what) - 1
        return data.count(what) + (self._seam[-edge:] + data[:edge]).count(what)

    def _end(self, data: bytes) -> int | None:
        """Return the offset at which the messages end, or None while more are expected."""
        raise NotImplementedError

    def _cut(self, data: bytes, end: int) -> ArrowPage | None:
        raise NotImplementedError


class DirectBulk(BulkAnswer):
    """The response to a direct get batch of `stream`; it always ends with a status."""

    def __init__(self, sid: bytes, reply: bytes, stream: bytes) -> None:
        super().__init__(sid, reply, b"HMSG %b %b " % (reply, sid))
        self._stream: Final = stream

    def _end(self, data: bytes) -> int | None:
        if not self._count(_STATUS, data) or not self._is_status(self._seam + data):
            return None
        return self._joined().rfind(self._own)

    def _is_status(self, recent: bytes) -> bool:
        """Return whether `recent` ends with a status frame.

        A payload may contain the text of a status, too.
        """
        start = recent.rfind(self._own)
        sizes, found, _ = recent[start + len(self._own) :].partition(_STATUS)
        return start >= 0 and bool(found) and sizes.replace(b" ", b"").isdigit()

    def _cut(self, data: bytes, end: int) -> ArrowPage | None:
        return cut_direct(data, end, self._mark, self._stream)


class PullBulk(BulkAnswer):
    """The response to a pull of `batch` messages. If there are fewer, it ends with a status."""

    def __init__(self, sid: bytes, reply: bytes, consumer: str, batch: int) -> None:
        # No other control line contains the consumer's name, which was chosen at random.
        super().__init__(sid, reply, b".%b." % consumer.encode())
        self._left = batch
        self._needed = 0
        # Whether the control line of the last message is incomplete, so that `_end` waits for it.
        self._in_line = False

    def _end(self, data: bytes) -> int | None:
        """Return the offset at which the last complete message ends, or None to wait for more data.

        `data` are the last received bytes.
        """
        if self._count(self._own, data):
            return self._joined().rfind(self._own)
        self._left -= self._count(self._mark, data)
        if self._left > 0 or self.size < self._needed:
            return None
        if self._in_line and b"\n" not in data:
            return None
        return self._last_end(self._joined())

    def _last_end(self, data: bytes) -> int | None:
        """Return the offset at which the last message ends, or None if it is incomplete."""
        if HOOKS:
            reached("page: before look", data)
        line = data.rfind(self._mark)
        end = data.find(b"\r\n", line)
        self._in_line = end < 0
        if self._in_line:
            return None
        size = data[data.rfind(b" ", line, end) + 1 : end]
        # If the size is not a number, the result is 0. The parser then gets all bytes and raises
        # the error.
        number = natural(size)
        self._needed = 0 if number is None else end + 4 + number
        return self._needed if self._needed <= len(data) else None

    def _cut(self, data: bytes, end: int) -> ArrowPage | None:
        return cut_pull(data, end, self._mark, self.sid)

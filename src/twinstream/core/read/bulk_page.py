"""The response of a page in bulk: its bytes are buffered and cut at once when it is complete.

Theory of operation
-------------------
A session passes incoming bytes to the bulk answer first. From the first message of the page on it
buffers all bytes, until it has seen the last message (it counts, without parsing) or a status of
the server (the end of a direct get, an empty pull, a failure). Then the messages are cut into
columns (`twinstream.core.read.arrow_cut`), and the bytes after them, such as the status, are
returned to the parser.

Bytes that cannot be cut are passed to the parser unchanged and are processed as usual: nothing is
lost, the page only takes longer. Other messages that arrive during a page are delayed to its end,
so a connection that reads in bulk should be used for nothing else.
"""

from __future__ import annotations

from typing import Final

from twinstream.core.base.digits import natural
from twinstream.core.base.hooks import HOOKS, reached
from twinstream.core.read.arrow_cut import cut_direct, cut_pull
from twinstream.core.read.arrow_page import ArrowPage

__all__ = ["LEAST", "BulkAnswer", "DirectBulk", "PullBulk"]

#: Minimum messages of a page in bulk: its fixed cost is about that of parsing this many frames.
LEAST: Final = 500

#: Maximum of buffered bytes: four times those of a page, for messages that are mostly headers.
_MAX_BYTES: Final = 64 * 1024 * 1024

# Longer than a mark and the numbers after it.
_SEAM: Final = 512

_STATUS: Final = b"\r\nNATS/1.0 "


class BulkAnswer:
    """Buffered bytes of one page. `mark` is part of the control line of each of its messages."""

    def __init__(self, sid: bytes, reply: bytes, mark: bytes) -> None:
        self.sid: Final = sid
        self.page: ArrowPage | None = None
        self.is_over = False
        self.size = 0
        """The number of buffered bytes."""
        # The start of a status message that answers the request.
        self._own: Final = b"HMSG %b %b " % (reply, sid)
        self._mark: Final = mark
        self._pieces: list[bytes] = []
        self._seam = b""
        self._given_up = False

    def give_up(self) -> None:
        """Leave all bytes to the parser, buffered ones as soon as the next bytes arrive."""
        self._given_up = True

    def take(self, data: bytes) -> bytes:
        """Take the next bytes and return those that are for the parser."""
        before = b""
        if not (self._pieces or self._given_up):
            start = self._begin(data)
            if start < 0:
                # Other messages, or a status without any message.
                self.is_over = self._own in data or self._mark in data
                return data
            # Bytes before the page, usually the final status of an earlier one.
            before, data = data[:start], data[start:]
        self._pieces.append(data)
        self.size += len(data)
        if self._given_up or self.size > _MAX_BYTES:
            return before + self._finish(0)
        end = self._end(data)
        self._seam = (self._seam + data)[-_SEAM:]
        return before if end is None else before + self._finish(end)

    def _begin(self, data: bytes) -> int:
        """Return where the line of the first message begins, -1 if there is none."""
        place = data.find(self._mark)
        start = data.rfind(b"\n", 0, place + 1) + 1
        return start if place >= 0 and data.startswith((b"MSG ", b"HMSG "), start) else -1

    def _finish(self, end: int) -> bytes:
        """Cut the messages before `end` and return the bytes after them."""
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
        """Count occurrences in new data, including those that begin in the seam before it."""
        edge = len(what) - 1
        return data.count(what) + (self._seam[-edge:] + data[:edge]).count(what)

    def _end(self, data: bytes) -> int | None:
        """Return where the messages end, or None while more are expected."""
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
        """Distinguish a status from a payload that contains the text of one."""
        start = recent.rfind(self._own)
        sizes, found, _ = recent[start + len(self._own) :].partition(_STATUS)
        return start >= 0 and bool(found) and sizes.replace(b" ", b"").isdigit()

    def _cut(self, data: bytes, end: int) -> ArrowPage | None:
        return cut_direct(data, end, self._mark, self._stream)


class PullBulk(BulkAnswer):
    """The response to a pull of `batch` messages; a full one ends without a status."""

    def __init__(self, sid: bytes, reply: bytes, consumer: str, batch: int) -> None:
        # The name was chosen at random for this read.
        super().__init__(sid, reply, b".%b." % consumer.encode())
        self._left = batch
        self._needed = 0
        # Whether the line of the last message is incomplete; it is checked again at its end.
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
        """Return where the last message ends, or None if it is incomplete."""
        if HOOKS:
            reached("page: before look", data)
        line = data.rfind(self._mark)
        end = data.find(b"\r\n", line)
        self._in_line = end < 0
        if self._in_line:
            return None
        size = data[data.rfind(b" ", line, end) + 1 : end]
        # If it is not a number, the parser raises the error.
        number = natural(size)
        self._needed = 0 if number is None else end + 4 + number
        return self._needed if self._needed <= len(data) else None

    def _cut(self, data: bytes, end: int) -> ArrowPage | None:
        return cut_pull(data, end, self._mark, self.sid)

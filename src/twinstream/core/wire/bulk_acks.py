"""Fast reader of publish acknowledgements: all of those in one socket read at once.

Acknowledgements of one stream to one inbox subscription differ in two numbers only: the token of
the inbox and the stream sequence. One regular expression finds both for a whole read, in C, while
the parser would make a frame for each. Bytes that look different are left to the parser.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Final

from twinstream.core.wire.protocol import Frame
from twinstream.core.wire.pub_ack import AckShape
from twinstream.models import PubAck

__all__ = ["AckCutter"]

# Number of reads to skip after a read in which other frames were mixed with acknowledgements.
_SKIPPED_READS: Final = 16

Deliver = Callable[[list[bytes], list[PubAck]], object]


class AckCutter:
    """Reads acknowledgements to inboxes `prefix` + number, of the subscription `sid`.

    `deliver` is called with the inboxes and, in the same order, the acknowledgements that they got.
    """

    def __init__(self, sid: bytes, prefix: bytes, deliver: Deliver) -> None:
        self.sid: Final = sid
        self.is_learning = True
        """Whether `learn` should be called with the next acknowledgement."""
        self._prefix: Final = prefix
        self._mark: Final = b"MSG " + prefix
        self._deliver: Final = deliver
        # None until the first example; replaced as a whole.
        self._known: tuple[re.Pattern[bytes], AckShape] | None = None
        self._aside = 0

    def learn(self, frame: Frame, shape: AckShape) -> None:
        """Use `frame`, an acknowledgement of the given shape, as the example for the others."""
        self.is_learning = False
        head, tail, size = shape.head, shape.tail, len(frame[3]) - 2
        digits = len(frame[3]) - len(head) - len(tail)
        line = b" %b %d\r\n" % (self.sid, size)
        # Sequences with the same number of digits only, so that the size in the line is right.
        # With one more digit the pattern no longer matches and is learned again.
        self._known = (
            re.compile(
                b"MSG (%b[0-9]+)%b([1-9][0-9]{%d})%b"
                % (re.escape(self._prefix), re.escape(line + head), digits - 1, re.escape(tail))
            ),
            shape,
        )

    def take(self, data: bytes) -> bytes:
        """Deliver the acknowledgements at the start of `data`; return the bytes after them."""
        known = self._known
        if known is None or not data.startswith(self._mark):
            return data
        if self._aside:
            self._aside -= 1
            return data
        pattern, shape = known
        # split() yields text between matches, inbox, sequence, and so on; the last is the rest.
        parts = pattern.split(data)
        if len(parts) == 1:
            self._known, self.is_learning = None, True
            return data
        if any(parts[:-1:3]):
            self._aside = _SKIPPED_READS
            return data
        self._deliver(parts[1::3], [shape.ack(seq) for seq in parts[2::3]])
        return parts[-1]

"""Parse all publish acknowledgements that one read from the socket returned, in one step.

Acknowledgements of one stream to one inbox subscription differ in two numbers only: the token of
the inbox and the stream sequence. One regular expression finds both numbers of all acknowledgements
in C, while the parser would create a frame for each. The parser gets all other bytes.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Final

from twinstream.core.wire.protocol import Frame
from twinstream.core.wire.pub_ack import AckShape
from twinstream.models import PubAck

__all__ = ["BulkAcks"]

# After a read in which other frames stand between acknowledgements, this many reads go to the
# parser without a search for acknowledgements.
_SKIPPED_READS: Final = 16

Deliver = Callable[[list[bytes], list[PubAck]], object]


class BulkAcks:
    """A reader of the acknowledgements that arrive on the inbox subscription `sid`.

    The inbox of an acknowledgement is `prefix` and a number. The reader calls `deliver` with two
    lists of equal length, the inboxes and their acknowledgements.
    """

    def __init__(self, sid: bytes, prefix: bytes, deliver: Deliver) -> None:
        self.sid: Final = sid
        self.is_learning = True
        """Whether `learn` should be called with the next acknowledgement."""
        self._prefix: Final = prefix
        self._mark: Final = b"MSG " + prefix
        self._deliver: Final = deliver
        # None before the first call of `learn`, and after a read that did not match until the next
        # call. Pattern and shape are replaced in one step.
        self._known: tuple[re.Pattern[bytes], AckShape] | None = None
        self._aside = 0

    def learn(self, frame: Frame, shape: AckShape) -> None:
        """Derive the pattern for later acknowledgements from `frame`, one of the shape `shape`."""
        self.is_learning = False
        head, tail, size = shape.head, shape.tail, len(frame[3]) - 2
        digits = len(frame[3]) - len(head) - len(tail)
        line = b" %b %d\r\n" % (self.sid, size)
        # The pattern matches only sequences with the same number of digits, because the size in the
        # line depends on this number. The first longer sequence does not match, and then `take`
        # requests a new pattern.
        self._known = (
            re.compile(
                b"MSG (%b[0-9]+)%b([1-9][0-9]{%d})%b"
                % (re.escape(self._prefix), re.escape(line + head), digits - 1, re.escape(tail))
            ),
            shape,
        )

    def take(self, data: bytes) -> bytes:
        """Deliver the acknowledgements at the start of `data`; return the bytes for the parser.

        These are the bytes after the acknowledgements, or all of `data` if it does not begin with
        an acknowledgement or if other frames stand between acknowledgements.
        """
        known = self._known
        if known is None or not data.startswith(self._mark):
            return data
        if self._aside:
            self._aside -= 1
            return data
        pattern, shape = known
        # For each match, split() yields the text before it, the inbox and the sequence. The last
        # item is the text after the last match.
        parts = pattern.split(data)
        if len(parts) == 1:
            self._known, self.is_learning = None, True
            return data
        if any(parts[:-1:3]):
            self._aside = _SKIPPED_READS
            return data
        self._deliver(parts[1::3], [shape.ack(seq) for seq in parts[2::3]])
        return parts[-1]

"""Acknowledgements that come by the hundred, cut out of a read at once.

Those of one stream to one inbox differ in two numbers only: the message's and its sequence. A
regular expression finds both for a whole read, in C, where the parser makes a frame for each.
Whatever looks different is the parser's, as if nobody had looked.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Final

from twinstream.core.wire.protocol import Frame
from twinstream.core.wire.pub_ack import AckShape
from twinstream.models import PubAck

__all__ = ["AckCutter"]

# Reads to let pass after one that holds other things too: to look at it was in vain.
_ASIDE: Final = 16

Deliver = Callable[[list[bytes], list[PubAck]], object]


class AckCutter:
    """Cuts acknowledgements to inboxes ``prefix`` + number, of the subscription ``sid``.

    ``deliver`` gets the inboxes and, in the same order, the acknowledgements that came to them.
    """

    def __init__(self, sid: bytes, prefix: bytes, deliver: Deliver) -> None:
        self.sid: Final = sid
        self.is_learning = True
        """Whether an example is wanted; see `learn`."""
        self._prefix: Final = prefix
        self._mark: Final = b"MSG " + prefix
        self._deliver: Final = deliver
        # No read looks like that before there was an example. Replaced as a whole.
        self._known: tuple[re.Pattern[bytes], AckShape] | None = None
        self._aside = 0

    def learn(self, frame: Frame, shape: AckShape) -> None:
        """Take an acknowledgement for what the others look like; it is of that shape itself."""
        self.is_learning = False
        head, tail, size = shape.head, shape.tail, len(frame[3]) - 2
        digits = len(frame[3]) - len(head) - len(tail)
        line = b" %b %d\r\n" % (self.sid, size)
        # As many digits as here, so that the size is right; with one more it learns anew.
        self._known = (
            re.compile(
                b"MSG (%b[0-9]+)%b([1-9][0-9]{%d})%b"
                % (re.escape(self._prefix), re.escape(line + head), digits - 1, re.escape(tail))
            ),
            shape,
        )

    def take(self, data: bytes) -> bytes:
        """Take the acknowledgements that a read begins with; return what is behind them."""
        known = self._known
        if known is None or not data.startswith(self._mark):
            return data
        if self._aside:
            self._aside -= 1
            return data
        pattern, shape = known
        # What is between them, the inbox, the sequence, and so on; in the end what is left.
        parts = pattern.split(data)
        if len(parts) == 1:
            self._known, self.is_learning = None, True
            return data
        if any(parts[:-1:3]):
            self._aside = _ASIDE
            return data
        self._deliver(parts[1::3], [shape.ack(seq) for seq in parts[2::3]])
        return parts[-1]

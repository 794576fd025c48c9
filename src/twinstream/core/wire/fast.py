"""Fast readers of publish acknowledgements, which compare bytes instead of parsing JSON.

`pub_ack.read_pub_ack` is the readable version, and `tests/core/wire/test_fast.py` compares the
results. The acknowledgements of one stream differ only in the sequence. An `AckReader` therefore
compares the other bytes of an acknowledgement with those of an earlier one. `BulkAcks` reads all
acknowledgements of one read from the socket: one regular expression finds their sequences and
inboxes in C, while the parser would create a frame for each.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any, Final, cast

from twinstream.core.wire.protocol import Frame
from twinstream.core.wire.pub_ack import is_of, read_pub_ack
from twinstream.errors import TwinstreamError
from twinstream.models import PubAck

__all__ = ["AckReader", "AckShape", "BulkAcks"]

_SEQ: Final = b'"seq":'
_ZERO: Final = ord("0")
# Sequences of at most this many digits are always in range.
_MOST_DIGITS: Final = 19

# After a read in which other frames stand between acknowledgements, this many reads go to the
# parser without a search for acknowledgements.
_SKIPPED_READS: Final = 16

Deliver = Callable[[list[bytes], list[PubAck]], object]


class _Blank(PubAck):
    """A mutable `PubAck` without constructor.

    `AckShape.acks` creates one, sets its fields and then changes its class to `PubAck`. Every
    published message needs a `PubAck`, and the constructor of the frozen class takes five times as
    long (Python 3.11 and 3.13).
    """

    __slots__ = ()

    __init__ = object.__init__  # pyright: ignore[reportAssignmentType]
    __setattr__ = object.__setattr__
    # `__delattr__` is set as well. With `__setattr__` alone, each assignment is slower, because the
    # interpreter looks up the method by name.
    __delattr__ = object.__delattr__


_blank: Final = cast("Callable[[], Any]", _Blank)


class AckShape:
    """The parts that all acknowledgements of one stream share: everything except the sequence."""

    __slots__ = ("between", "domain", "head", "stream", "tail")

    def __init__(self, head: bytes, tail: bytes, stream: str, domain: str | None) -> None:
        self.head: Final = head
        self.tail: Final = tail
        self.between: Final = slice(len(head), -len(tail))
        self.stream: Final = stream
        self.domain: Final = domain

    def acks(self, seqs: list[bytes]) -> list[PubAck]:
        """Return the acknowledgements whose sequences have the given digits."""
        found: list[PubAck] = []
        stream, domain = self.stream, self.domain
        for seq in seqs:
            ack = _blank()
            ack.unknown = {}
            ack.stream = stream
            ack.seq = int(seq)
            ack.domain = domain
            ack.duplicate = ack.val = ack.batch = ack.count = None
            ack.__class__ = PubAck
            found.append(ack)
        return found


class AckReader:
    """A reader of acknowledgements, which remembers the shape of the last one.

    Threads may share a reader, because its only attribute is replaced in one step.
    """

    __slots__ = ("shape",)

    def __init__(self) -> None:
        # No reply begins with this byte, so the first reply is parsed as JSON.
        self.shape = AckShape(b"\0", b"", "", None)
        """The shape of the last acknowledgement that was parsed as JSON.

        Acknowledgements with headers, `duplicate`, `val` or `batch` do not count.
        """

    def read(self, frame: Frame, subject: str) -> PubAck:
        """Return the acknowledgement in a reply. Raises the same errors as `read_pub_ack`."""
        body, shape = frame[3], self.shape
        if body.startswith(shape.head) and body.endswith(shape.tail):
            # There are no digits if the reply has other members after `seq`, such as `duplicate`.
            digits = body[shape.between]
            if digits.isdigit() and digits[0] != _ZERO and len(digits) <= _MOST_DIGITS:
                return shape.acks([digits])[0]
        ack = read_pub_ack(frame, subject)
        if not (ack.duplicate or ack.val or ack.batch or frame[2]):
            self._learn(ack, body)
        return ack

    def is_strange(self, frame: Frame, stream: str, domain: str | None) -> bool:
        """Return whether a reply is the acknowledgement of another stream or of another domain.

        The result is False for a reply that is not an acknowledgement.
        """
        try:
            return not is_of(self.read(frame, stream), stream, domain)
        except TwinstreamError:
            return False

    def _learn(self, ack: PubAck, body: bytes) -> None:
        head, _, rest = body.partition(_SEQ)
        seq = b"%d" % ack.seq
        if rest.startswith(seq):
            self.shape = AckShape(head + _SEQ, rest[len(seq) :], ack.stream, ack.domain)


class BulkAcks:
    """A reader of the acknowledgements that arrive on the inbox subscription `sid`.

    The inbox of an acknowledgement is `prefix` and a number. `take` gets the bytes of each read
    from the socket. It calls `deliver` with two lists of equal length, the inboxes and their
    acknowledgements. Acknowledgements that it does not recognise arrive as frames, for `read`.
    """

    def __init__(self, sid: bytes, prefix: bytes, deliver: Deliver) -> None:
        self.sid: Final = sid
        self._prefix: Final = prefix
        self._mark: Final = b"MSG " + prefix
        self._deliver: Final = deliver
        self._reader: Final = AckReader()
        # None before the first call of `read`, and after a read that did not match until the next
        # call. Pattern and shape are replaced in one step.
        self._known: tuple[re.Pattern[bytes], AckShape] | None = None
        self._aside = 0

    def read(self, frame: Frame, subject: str) -> PubAck:
        """Return the acknowledgement in a reply, and derive the pattern for later ones from it.

        Raises the same errors as `read_pub_ack`.
        """
        ack = self._reader.read(frame, subject)
        if self._known is None:
            self._learn(frame[3], self._reader.shape)
        return ack

    def _learn(self, body: bytes, shape: AckShape) -> None:
        """Derive the pattern for later acknowledgements from `body`, which was parsed as JSON.

        Without plain digits between the two parts of `shape`, `take` continues without a pattern.
        """
        head, tail = shape.head, shape.tail
        digits = body[shape.between] if body.startswith(head) and body.endswith(tail) else b""
        if not digits.isdigit() or digits[0] == _ZERO or len(digits) > _MOST_DIGITS:
            return
        line = b" %b %d\r\n" % (self.sid, len(body) - 2)
        # The pattern matches only sequences with the same number of digits, because the size in the
        # line depends on this number. The first longer sequence does not match, and then `take`
        # requests a new pattern.
        self._known = (
            re.compile(
                b"MSG (%b[0-9]+)%b([1-9][0-9]{%d})%b"
                % (
                    re.escape(self._prefix),
                    re.escape(line + head),
                    len(digits) - 1,
                    re.escape(tail),
                )
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
            self._known = None
            return data
        if any(parts[:-1:3]):
            self._aside = _SKIPPED_READS
            return data
        self._deliver(parts[1::3], shape.acks(parts[2::3]))
        return parts[-1]

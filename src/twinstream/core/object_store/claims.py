"""Find out which objects of a store need a content, without reading all metadata each time.

Two descriptions can name the same content: a client was killed while it renamed an object, or it
stored a foreign NUID. The content must not be removed as long as one of them needs it. The server
cannot search in descriptions, so a client that removes content reads them all once, and later only
those that were stored since.
"""

from __future__ import annotations

from typing import Any, Final, cast

from twinstream.core.read.stream_message import StreamMessage
from twinstream.core.wire.response import read_json
from twinstream.models import Timestamp

__all__ = ["MOST", "Claims", "claimed"]

MOST: Final = 100_000
"""The default of `Claims.most`. So many descriptions take about 40 MB."""


def claimed(data: bytes) -> str | None:
    """Return the NUID of the content that a description needs, None if it needs none.

    Other members may be invalid: another client may still read the object.
    """
    try:
        loaded = read_json(data)
    except ValueError:
        return None
    if not isinstance(loaded, dict):
        return None
    members = cast("dict[str, Any]", loaded)
    nuid = members.get("nuid")
    return nuid if isinstance(nuid, str) and nuid and members.get("deleted") is not True else None


class Claims:
    """The NUID in the last known description of each object, by the description's subject."""

    def __init__(self, most: int = MOST) -> None:
        self.most: Final = most
        """The maximum number of descriptions that are remembered."""
        self._nuids: Final[dict[str, str]] = {}
        self._created: Timestamp | None = None
        self.next_seq = 1
        """The sequence of the first message that was not read yet."""
        self.is_full = False
        """Whether the store has more objects than are remembered."""

    def begin(self, created: Timestamp | None, last_seq: int) -> None:
        """Forget everything if the stream was re-created or restored since the last call."""
        if created != self._created or last_seq < self.next_seq - 1:
            self._nuids.clear()
            self.next_seq, self.is_full = 1, False
        self._created = created

    def add(self, message: StreamMessage) -> None:
        """Add a description, in the order of the stream."""
        nuid = claimed(message.data)
        self.next_seq = message.seq + 1
        if nuid is None:
            self._nuids.pop(message.subject, None)
        else:
            self._nuids[message.subject] = nuid
        if len(self._nuids) > self.most:
            self._nuids.clear()
            self.is_full = True

    def of(self, nuid: str) -> list[str]:
        """Return the subjects of the descriptions that name a NUID, or that did so before."""
        return [subject for subject, each in self._nuids.items() if each == nuid]

    def drop(self, subject: str) -> None:
        """Forget a description that no longer exists."""
        self._nuids.pop(subject, None)

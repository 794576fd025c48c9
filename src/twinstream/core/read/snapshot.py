"""The state of a stream by subject: the last message of each, at one sequence."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Final

from twinstream.core.read.page import StoredPage
from twinstream.core.read.stream_message import StreamMessage

__all__ = ["Latest", "Snapshot"]


class Snapshot(Mapping[str, StreamMessage]):
    """The last message of each subject, in the order of their sequences; `seq` says as of when."""

    def __init__(self, stream: str, seq: int, messages: Mapping[str, StreamMessage]) -> None:
        self.stream: Final = stream
        self.seq: Final = seq
        """Every message with this or a lower sequence was considered, and none with a higher."""
        self._messages: Final = messages

    def __getitem__(self, subject: str) -> StreamMessage:
        return self._messages[subject]

    def __iter__(self) -> Iterator[str]:
        return iter(self._messages)

    def __len__(self) -> int:
        return len(self._messages)

    def __repr__(self) -> str:
        return f"<Snapshot of {self.stream} at {self.seq}: {len(self)} subjects>"


class Latest:
    """Keeps the last message of each subject of the pages that it is given."""

    def __init__(self) -> None:
        self._rows: Final[dict[bytes, tuple[int, StoredPage, int]]] = {}
        self.last_seq = 0
        """The highest sequence that was seen."""

    def add(self, page: StoredPage) -> None:
        """Take note of a page; the order of pages does not matter."""
        rows = self._rows
        for at, (seq, subject) in enumerate(zip(page.seqs, page.subjects, strict=True)):
            known = rows.get(subject)
            if known is None or known[0] < seq:
                rows[subject] = (seq, page, at)
        if page.seqs:
            self.last_seq = max(self.last_seq, page.seqs[-1])

    def snapshot(self, stream: str, seq: int) -> Snapshot:
        """Return what is known, as of a sequence."""
        found = sorted(self._rows.values(), key=lambda row: row[0])
        messages = (page.message(at, stream) for _, page, at in found)
        return Snapshot(stream, seq, {message.subject: message for message in messages})

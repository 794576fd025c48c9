"""Snapshots of a stream: the last message of each subject, as of one sequence."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Final, Generic

from twinstream.core.read.page import StoredPage, ns_of
from twinstream.core.read.stream_message import StreamMessage
from twinstream.core.wire.payload import P

__all__ = ["LastSeqs", "Latest", "Snapshot"]


class Snapshot(Mapping[str, StreamMessage[P]], Generic[P]):
    """The last message of each subject, ordered by sequence, as of the sequence `seq`.

    Args:
        stream: Name of the stream.
        messages: The last messages by their subjects.
    """

    def __init__(self, stream: str, seq: int, messages: Mapping[str, StreamMessage[P]]) -> None:
        self.stream_name: Final = stream
        """Name of the stream."""
        self.seq: Final = seq
        """The sequence of the snapshot. It covers all messages up to this one, and none above."""
        self._messages: Final = messages

    def __getitem__(self, subject: str) -> StreamMessage[P]:
        return self._messages[subject]

    def __iter__(self) -> Iterator[str]:
        return iter(self._messages)

    def __len__(self) -> int:
        return len(self._messages)

    def __repr__(self) -> str:
        return f"<Snapshot of {self.stream_name} at {self.seq}: {len(self)} subjects>"


class Latest:
    """The last message of each subject, collected from pages.

    It keeps these messages only, and not the pages.
    """

    def __init__(self) -> None:
        # Sequence, time, header block and payload by subject.
        self._rows: Final[dict[bytes, tuple[int, bytes | int, bytes, bytes]]] = {}
        self.last_seq = 0
        """The highest sequence in the pages."""

    def add(self, page: StoredPage) -> None:
        """Add a page; pages may come in any order."""
        rows = self._rows
        columns = (page.seqs, page.times, page.headers, page.payloads)
        for subject, row in zip(page.subjects, zip(*columns, strict=True), strict=True):
            known = rows.get(subject)
            if known is None or known[0] < row[0]:
                rows[subject] = row
        if page.seqs:
            self.last_seq = max(self.last_seq, page.seqs[-1])

    def clear(self) -> None:
        """Forget all pages."""
        self._rows.clear()
        self.last_seq = 0

    def snapshot(self, stream: str, seq: int) -> Snapshot:
        """Return the collected messages as a snapshot of `stream` as of the sequence `seq`."""
        page = self.page(stream)
        messages = (page.message(at, stream) for at in range(len(page)))
        return Snapshot(stream, seq, {message.subject: message for message in messages})

    def page(self, stream: str) -> StoredPage:
        """Return the collected messages as one page."""
        found = StoredPage()
        for subject, row in sorted(self._rows.items(), key=lambda each: each[1][0]):
            seq, time, block, payload = row
            found.seqs.append(seq)
            found.subjects.append(subject)
            # Collected pages may have times of both kinds, but one page must have one kind.
            found.times.append(time if isinstance(time, int) else ns_of(time, stream))
            found.headers.append(block)
            found.payloads.append(payload)
        return found


class LastSeqs:
    """The sequence of the last message of each subject, collected from pages, without messages."""

    def __init__(self) -> None:
        self.by_subject: Final[dict[bytes, int]] = {}
        self.last_seq = 0
        """The highest sequence in the pages."""

    def add(self, page: StoredPage) -> None:
        """Add a page; pages may come in any order."""
        known = self.by_subject
        for seq, subject in zip(page.seqs, page.subjects, strict=True):
            if known.get(subject, 0) < seq:
                known[subject] = seq
        if page.seqs:
            self.last_seq = max(self.last_seq, page.seqs[-1])

    def clear(self) -> None:
        """Forget all pages."""
        self.by_subject.clear()
        self.last_seq = 0

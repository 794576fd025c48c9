"""Split the keys of a bucket into ranges of revisions, one range per task."""

from __future__ import annotations

import zlib
from array import array
from bisect import bisect_left
from collections.abc import Mapping, Sequence
from typing import Final

from attrs import frozen

from twinstream.spark.source.options import SourceOptions
from twinstream.spark.source.plan import SequenceRange, Way, partition_count, split
from twinstream.spark.source.stream_state import StreamState

__all__ = ["KeyRange", "Keys", "ranges_of_history", "ranges_of_keys"]


@frozen
class Keys:
    """Keys of a bucket, each with its last revision at the time of planning."""

    revisions: Sequence[int]
    """The last revision of each key, ascending."""
    subjects: Sequence[bytes]
    """The stored subjects of the keys, in the order of `revisions`."""

    @classmethod
    def of(cls, by_subject: Mapping[bytes, int], start: int) -> Keys:
        """Return the keys whose last revision is `start` or later."""
        found = sorted((seq, subject) for subject, seq in by_subject.items() if seq >= start)
        return cls([seq for seq, _ in found], [subject for _, subject in found])

    def __len__(self) -> int:
        return len(self.revisions)

    def part(self, low: int, high: int) -> Keys:
        """Return the keys from position `low` up to, not including, `high`."""
        return Keys(self.revisions[low:high], self.subjects[low:high])

    def between(self, low: int, high: int) -> Keys:
        """Return the keys whose revisions are in `[low, high)`."""
        at = self.revisions
        return self.part(bisect_left(at, low), bisect_left(at, high))


class KeyRange(SequenceRange):
    """The keys that one task reads, and the range `[start, end)` of their revisions.

    The subjects of the keys are compressed, because Spark sends the range to the task and a range
    may have many keys.
    """

    def __init__(
        self, stream: str, start: int, end: int, way: Way, created: str, keys: Keys
    ) -> None:
        super().__init__(stream, start, end, way, created)
        # The line break is a safe separator, because no subject contains one.
        self._subjects: Final = zlib.compress(b"\n".join(keys.subjects), 1)
        self._revisions: Final = array("Q", keys.revisions)

    @property
    def keys(self) -> dict[int, bytes]:
        """The stored subjects of the keys, by revision."""
        subjects = zlib.decompress(self._subjects).split(b"\n") if self._revisions else []
        return dict(zip(self._revisions, subjects, strict=True))


def ranges_of_keys(
    options: SourceOptions, state: StreamState, keys: Keys, way: Way
) -> list[KeyRange]:
    """Return ranges with about the same number of keys, for a read of the keys' last revisions.

    Return an empty list if there are no keys.
    """
    if not len(keys):
        return []
    # A task also reads other revisions between the revisions of its keys, and discards them. So the
    # number of tasks depends on the number of messages as well as on the number of keys.
    span = keys.revisions[-1] + 1 - keys.revisions[0]
    parts = min(partition_count(options, min(span, max(len(keys), state.messages))), len(keys))
    found: list[KeyRange] = []
    for at in range(parts):
        part = keys.part(len(keys) * at // parts, len(keys) * (at + 1) // parts)
        start, end = part.revisions[0], part.revisions[-1] + 1
        found.append(KeyRange(state.name, start, end, way, state.created, part))
    return found


def ranges_of_history(
    options: SourceOptions, state: StreamState, keys: Keys, start: int, end: int, way: Way
) -> list[KeyRange]:
    """Return ranges that cover `[start, end)`, for a read of all revisions.

    Each range has the keys whose last revision is in the range. Return an empty list if the bounds
    contain no sequence.
    """
    if end <= start:
        return []
    parts = partition_count(options, end - start)
    return [
        KeyRange(
            *(state.name, each.start, each.end, way, state.created),
            keys.between(each.start, each.end),
        )
        for each in split(state.name, start, end, parts, way)
    ]

"""The floors of an elastic group: up to where the messages of each partition were processed.

A server that was stopped cleanly once and killed later copies messages into the group's stream
again, although they were acknowledged (server 2.15.1). Such a second copy is recognized by its
origin, which the server appends to each copy::

    Nats-Stream-Source: <stream> <sequence> <filter> <transform> <subject> <identity of the stream>

In the group's stream, the first copies of one source have increasing origins. So a message is a
second copy if its origin is not above an origin that was seen before, although its own sequence is
higher. It was processed if its origin is not above the floor of its partition: all first copies up
to the floor are acknowledged. Or this instance itself has processed the first copy. First copies
are always handled, whatever the floor is.

Servers before 2.15 append no identity. They copy no message twice, so they need no floors.
"""

from __future__ import annotations

import hashlib
from collections import deque
from collections.abc import Mapping
from typing import Final, cast

from twinstream.core.groups.names import GroupNames
from twinstream.core.wire.response import read_object, write_json
from twinstream.errors import TwinstreamError

__all__ = [
    "BadFloors",
    "Floor",
    "Place",
    "checked",
    "digest",
    "floor_bytes",
    "floor_key",
    "origin_of",
    "read_floors",
]

_NAME: Final = b"\r\nNats-Stream-Source: "
_PARTS: Final = 6
# More digits than the largest sequence has are no sequence.
_DIGITS: Final = 20
_LARGEST: Final = 2**63 - 1
# Identities of sources in one record: each stream of the same name has its own.
_MOST_SOURCES: Final = 16

Floor = tuple[int, int]
"""The origin up to which a partition was processed, and the sequence of its copy."""


class BadFloors(TwinstreamError):
    """A stored record of floors is invalid."""


def origin_of(block: bytes, size: int, stream: bytes) -> tuple[bytes, int] | None:
    """Return the source of a copy and its sequence there; None for any other message.

    `block` begins with `size` bytes of headers. The copy must be of `stream`. A publisher may have
    stored the same header, so the last one counts, which the server has appended.
    """
    start = block.rfind(_NAME, 0, size)
    if start < 0:
        return None
    start += len(_NAME)
    parts = block[start : block.find(b"\r\n", start, size)].split(b" ")
    if len(parts) != _PARTS or parts[0] != stream:
        return None
    name, sequence, given, transform, _, identity = parts
    if not sequence.isdigit() or len(sequence) > _DIGITS:
        return None
    return b" ".join((name, given, transform, identity)), int(sequence)


class Place:
    """What one instance of a member knows of one source in one partition."""

    __slots__ = ("_done", "_open", "_seen", "floor", "stored")

    def __init__(self, floor: Floor = (0, 0)) -> None:
        self.floor = floor
        self.stored = floor
        """The floor that was read or written last."""
        # The highest origin so far, and the sequence of its copy. First copies of lower origins
        # have lower sequences.
        self._seen = floor
        # Origins and sequences of the messages above the floor, in the order of their arrival.
        self._open: Final[deque[Floor]] = deque()
        # Origins above the floor that this instance has processed.
        self._done: set[int] = set()

    def inherit(self, earlier: Place) -> None:
        """Add what the instance knew before it created its consumer again."""
        self.floor = max(self.floor, earlier.floor)
        self._seen = max(self._seen, earlier._seen)
        self._done = {origin for origin in earlier._done.copy() if origin > self.floor[0]}

    def is_second(self, origin: int, seq: int) -> bool:
        """Return whether a received message is a second copy."""
        highest, seq_of_highest = self._seen
        if origin > highest:
            self._seen = (origin, seq)
            return False
        return seq > seq_of_highest

    def is_processed(self, origin: int) -> bool:
        """Return whether a second copy is one of a processed message."""
        return origin <= self.floor[0] or origin in self._done

    def began(self, origin: int, seq: int) -> None:
        """Note a message that is to be handled."""
        self._open.append((origin, seq))

    def done(self, origin: int) -> None:
        """Note that this instance has processed a message."""
        if origin > self.floor[0]:
            self._done.add(origin)

    @property
    def is_changed(self) -> bool:
        """Whether the stored floor may be too low."""
        return bool(self._open) or self.floor != self.stored

    def advance(self, acknowledged: int) -> None:
        """Raise the floor: all messages up to the sequence `acknowledged` are acknowledged."""
        waiting = self._open
        origin, last = self.floor
        while waiting and waiting[0][1] <= acknowledged:
            mine, seq = waiting.popleft()
            if mine > origin:
                origin, last = mine, max(last, seq)
        self.floor = (origin, last)
        # Other threads add origins meanwhile, so the set is not replaced.
        self._done.difference_update([each for each in self._done.copy() if each <= origin])


# ---- the stored form


def floor_key(names: GroupNames, partition: str) -> str:
    """Return the key of a partition's record in the bucket of the group.

    Its first token has a slash, so that no client takes it for the name of a stream with groups.
    """
    return f"floors/{names.stream}.{names.group}.{partition}"


def floor_bytes(created: str, floors: Mapping[str, Floor]) -> bytes:
    """Return the record of a partition: its floors by the digests of their sources.

    `created` is the creation time of the group's stream.
    """
    last = sorted(floors.items(), key=lambda item: item[1][1])[-_MOST_SOURCES:]
    return write_json({"created": created, "floors": dict(last)})


def read_floors(data: bytes, created: str) -> dict[str, Floor]:
    """Return the floors in the record of a partition, by the digests of their sources.

    The record of another stream, with another creation time, has none. Raises `BadFloors` if the
    record is invalid.
    """
    try:
        record = read_object(data)
    except ValueError as error:
        raise BadFloors(str(error)) from error
    if record.get("created") != created:
        return {}
    floors: object = record.get("floors")
    if not isinstance(floors, dict):
        raise BadFloors("floors is not an object")
    return {source: _floor(pair) for source, pair in cast("dict[str, object]", floors).items()}


def _floor(pair: object) -> Floor:
    match pair:
        case [int(origin), int(seq)] if 0 < origin <= _LARGEST and 0 < seq <= _LARGEST:
            return (origin, seq)
    raise BadFloors("a floor is not a pair of sequences")


def checked(floor: Floor, last: int) -> Floor:
    """Return a stored floor. Raises `BadFloors` if it is above the source's `last` sequence."""
    if floor[0] > last:
        raise BadFloors(f"it is {floor[0]}, and the last sequence of the stream is {last}")
    return floor


def digest(source: bytes) -> str:
    """Return a short name of a source, which may have any number of filters."""
    return hashlib.sha256(source).hexdigest()[:32]

"""The floors of an elastic group: up to where the messages of each partition were processed.

A server that was stopped cleanly once and killed later copies messages into the group's stream
again, although they were acknowledged. Such a second copy is recognized by its
origin, which the server appends to each copy::

    Nats-Stream-Source: <stream> <sequence> <filter> <transform> <subject> <identity of the stream>

All first copies up to the floor of a partition are acknowledged. The floor is an origin with the
sequence of its copy in the group's stream. As first copies of one source have increasing origins, a
message with a lower origin and a higher sequence is a second copy, of a processed message. First
copies have no higher sequence, so they are always handled. An instance also knows which messages
above the floor it has processed itself.

Servers before 2.15 append no identity. They copy no message twice, so they need no floors.
"""

from __future__ import annotations

import hashlib
import math
from collections import deque
from collections.abc import Mapping
from typing import Final, cast

from twinstream.core.groups.names import GroupNames
from twinstream.core.wire.response import read_object, write_json
from twinstream.errors import TwinstreamError

__all__ = [
    "BadFloors",
    "Floor",
    "Origins",
    "Place",
    "checked",
    "digest",
    "floor_bytes",
    "floor_key",
    "read_floors",
]

_NAME: Final = b"\r\nNats-Stream-Source: "
# Filter, transform, subject and identity.
_PARTS: Final = 4
# More digits than the largest sequence has are no sequence.
_DIGITS: Final = 20
_LARGEST: Final = 2**63 - 1
# Identities of sources in one record: each stream of the same name has its own.
_MOST_SOURCES: Final = 16

Floor = tuple[int, int]
"""The origin up to which a partition was processed, and the sequence of its copy."""


class BadFloors(TwinstreamError):
    """A stored record of floors is invalid."""


class Origins:
    """A parser of the origins of copies of one stream.

    The source is usually the same for all messages, so the parser compares it with the last one.
    This runs for each message.
    """

    __slots__ = ("_begin", "_end", "_kind", "_size", "_source")

    def __init__(self, stream: str) -> None:
        # The parts of the last header: up to the sequence, after it, and after the subject.
        self._begin: Final = _NAME + stream.encode() + b" "
        self._size: Final = len(self._begin)
        self._kind: bytes = b"\n"
        self._end: bytes = b"\n"
        self._source = b""

    def read(self, block: bytes, size: int) -> tuple[bytes, int] | None:
        """Return the source of a copy and its sequence there; None for any other message.

        `block` begins with `size` bytes of headers. A publisher may have stored the same header, so
        the last one counts, which the server has appended.
        """
        start = block.rfind(_NAME, 0, size)
        if not block.startswith(self._begin, start):
            return None
        digits, _, rest = block[start + self._size : size].partition(b" ")
        if not (rest.startswith(self._kind) and self._end in rest):
            parts = rest.partition(b"\r\n")[0].split(b" ")
            if len(parts) != _PARTS:
                return None
            given, transform, _, identity = parts
            self._kind = b"%b %b " % (given, transform)
            self._end = b" %b\r\n" % identity
            self._source = self._begin[len(_NAME) :] + b" ".join((given, transform, identity))
        if not digits.isdigit() or len(digits) > _DIGITS:
            return None
        return self._source, int(digits)


class Place:
    """What one instance of a member knows of one source in one partition."""

    __slots__ = ("_done", "floor", "highest", "is_opened", "open", "partition", "source", "stored")

    def __init__(self, partition: bytes, source: bytes) -> None:
        self.partition: Final = partition
        self.source: Final = source
        self.is_opened = False
        """Whether the stored floor was read."""
        self.highest = math.inf
        """The highest origin so far. A message that is not above it may be a second copy."""
        self.floor: Floor = (0, 0)
        self.stored: Floor = (0, 0)
        """The floor that was read or written last."""
        self.open: Final[deque[Floor]] = deque()
        """Origins and sequences of the messages above the floor, in the order of their arrival."""
        # Origins above the floor that this instance has processed.
        self._done: set[int] = set()

    def begin(self, stored: Floor, earlier: Place | None) -> None:
        """Begin with the stored floor.

        `earlier` is what the instance knew before it created its consumer again.
        """
        self.floor = self.stored = stored
        if earlier is not None:
            self.floor = max(stored, earlier.floor)
            self._done = {origin for origin in earlier._done.copy() if origin > self.floor[0]}
        seen = [origin for origin, _ in self.open.copy()]
        self.highest = max([self.floor[0], *self._done, *seen])
        self.is_opened = True

    def has_processed(self, origin: int, seq: int) -> bool:
        """Return whether a message was processed, as its first copy.

        The sequence of a first copy is not above that of the floor.
        """
        floor, last = self.floor
        return (origin <= floor and seq > last) or origin in self._done

    def done(self, origin: int) -> None:
        """Note that this instance has processed a message."""
        if origin > self.floor[0]:
            self._done.add(origin)

    @property
    def is_changed(self) -> bool:
        """Whether the stored floor may be too low."""
        return self.is_opened and (bool(self.open) or self.floor != self.stored)

    def advance(self, acknowledged: int) -> None:
        """Raise the floor: all messages up to the sequence `acknowledged` are acknowledged.

        Does nothing before `begin`, which may run in another thread: the stored floor is unknown.
        """
        if not self.is_opened:
            return
        waiting = self.open
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
        case _:
            raise BadFloors("a floor is not a pair of sequences")


def checked(floor: Floor, last: int) -> Floor:
    """Return a stored floor. Raises `BadFloors` if it is above the source's `last` sequence."""
    if floor[0] > last:
        raise BadFloors(f"it is {floor[0]}, and the last sequence of the stream is {last}")
    return floor


def digest(source: bytes) -> str:
    """Return a short name of a source, which may have any number of filters."""
    return hashlib.sha256(source).hexdigest()[:32]

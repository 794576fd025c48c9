"""How the content of an object is cut into messages, and put together again."""

from __future__ import annotations

import hashlib
from collections import deque
from collections.abc import Iterator
from typing import Final

from attrs import frozen

from twinstream.core.object_store.errors import (
    BadObjectInfo,
    DigestMismatch,
    ObjectChanged,
    ObjectIncomplete,
)
from twinstream.core.object_store.info import CHUNK_SIZE, digest_bytes, digest_text
from twinstream.errors import BadArgument
from twinstream.models import ObjectInfo

__all__ = [
    "Chunker",
    "Content",
    "ContentRange",
    "ObjectProgress",
    "StoredChunk",
    "check_index",
    "chunk_size",
    "resumed_at",
]

# Bytes reserved for the headers of a chunk: the message id, the expected stream, and headers that
# servers on the way may add.
_HEADERS: Final = 512


@frozen(kw_only=True)
class ObjectProgress:
    """How far an object was stored or read, in bytes."""

    name: str
    transferred: int
    """Bytes of the content that the server has acknowledged, or that were handed over."""
    size: int | None
    """Bytes of the whole content, None where that is not known before its end."""


def chunk_size(wanted: int | None, max_payload: int, max_msg_size: int | None) -> int:
    """Return how many bytes a chunk may have: what is wanted, or what the server takes."""
    most = max_payload
    if max_msg_size is not None and max_msg_size > 0:
        most = min(most, max_msg_size)
    if most <= _HEADERS:
        raise BadArgument(
            f"messages of at most {most} bytes hold no chunks: raise max_payload of the server or"
            " max_msg_size of the stream"
        )
    return min(wanted or CHUNK_SIZE, most - _HEADERS)


class Chunker:
    """Cuts pieces of any size into chunks of one size, and hashes them."""

    def __init__(self, size: int) -> None:
        self.chunk_size: Final = size
        self.sha: Final = hashlib.sha256()
        self.size = 0
        """Bytes so far."""
        self._rest = bytearray()

    def hash(self, piece: memoryview) -> None:
        """Add a piece to the hash; other threads can run meanwhile."""
        self.sha.update(piece)

    def cut(self, piece: memoryview) -> Iterator[bytes]:
        """Iterate over the chunks that a piece fills."""
        rest, size = self._rest, self.chunk_size
        self.size += len(piece)
        at = 0
        if rest:
            at = size - len(rest)
            rest += piece[:at]
            if len(rest) < size:
                return
            yield bytes(rest)
            rest.clear()
        while at + size <= len(piece):
            yield bytes(piece[at : at + size])
            at += size
        rest += piece[at:]

    def last(self) -> bytes:
        """Return what is left for the last chunk, perhaps nothing."""
        return bytes(self._rest)


@frozen
class StoredChunk:
    """Where a chunk is stored, and how many bytes of content it has."""

    seq: int
    size: int


class Content:
    """The content of an object as its chunks arrive, in order.

    The last chunk is held back until the hash of all is the one of the description. Other clients
    end an object with an empty message that `chunks` does not count, so empty ones are passed over.
    """

    def __init__(self, info: ObjectInfo) -> None:
        self._info: Final = info
        self._sha: Final = hashlib.sha256()
        self._wanted: Final = _digest(info)
        self._last: bytes | None = None
        self.chunks = 0
        """Chunks so far, those that are held back included."""
        self.size = 0
        """Bytes of these."""
        self.total: Final = info.size or 0
        """Bytes of the whole content."""
        self.is_whole = False
        """Whether all content came and is verified."""
        self._finish()

    def resume(self, piece: bytes) -> None:
        """Add a piece that was received earlier; `resumed` says how many chunks these were."""
        self._sha.update(piece)
        self.size += len(piece)

    def resumed(self, chunks: int) -> None:
        """Take note of how many chunks were received earlier. Raises `DigestMismatch`."""
        self.chunks = chunks
        self._finish()

    def take(self, payloads: list[bytes]) -> list[bytes]:
        """Return what may be handed over after further chunks. Raises `DigestMismatch`.

        Chunks behind the last one are left out.
        """
        found: list[bytes] = []
        for payload in payloads:
            if self.is_whole:
                break
            if not payload:
                continue
            if self._last is not None:
                found.append(self._last)
            self._sha.update(payload)
            self.chunks += 1
            self.size += len(payload)
            self._last = payload
            self._finish()
        if self.is_whole and self._last is not None:
            found.append(self._last)
            self._last = None
        return found

    def _finish(self) -> None:
        """Verify the content if all of it is there."""
        info = self._info
        if self.chunks < (info.chunks or 0):
            return
        if self.size != (info.size or 0):
            raise DigestMismatch(
                f"object {info.name!r} has {self.size} bytes of content, its description says"
                f" {info.size or 0}"
            )
        found = self._sha.digest()
        if self._wanted is not None and found != self._wanted:
            raise DigestMismatch(
                f"object {info.name!r}: the content has the digest {digest_text(found)}, its"
                f" description says {info.digest}"
            )
        self.is_whole = True


def _digest(info: ObjectInfo) -> bytes | None:
    if not info.digest:
        return None
    try:
        return digest_bytes(info.digest)
    except BadArgument as error:
        raise BadObjectInfo(f"object {info.name!r}: {error}") from error


class ContentRange:
    """A part of an object's content, from the byte `start` up to, not including, `end`.

    It cannot be compared with the digest; that each chunk has the size of the index is checked.
    """

    def __init__(self, info: ObjectInfo, index: list[StoredChunk], start: int, end: int) -> None:
        self._info: Final = info
        self._start: Final = start
        self._end: Final = end
        self._left: Final = deque(index)
        self.total: Final = max(end - start, 0)
        """Bytes of the range."""
        self._at = 0
        while self._left and self._at + self._left[0].size <= start:
            self._at += self._left.popleft().size
        self.first_seq: Final = self._left[0].seq if self._left else 1
        """Where to begin to read."""
        self.chunks = len(index) - len(self._left)
        """Chunks so far, those before the range included."""

    @property
    def is_whole(self) -> bool:
        """Whether the range is complete."""
        return self._at >= self._end or self._start >= self._end

    def take(self, payloads: list[bytes]) -> list[bytes]:
        """Return the part of further chunks that lies in the range. Raises `ObjectChanged`."""
        found: list[bytes] = []
        for payload in payloads:
            if self.is_whole:
                break
            if not payload:
                continue
            size = self._left.popleft().size if self._left else 0
            if len(payload) != size:
                raise ObjectChanged(
                    f"object {self._info.name!r}: a chunk has {len(payload)} bytes, {size} were"
                    " listed before"
                )
            begin, end = max(self._start - self._at, 0), self._end - self._at
            found.append(payload[begin:end])
            self._at += size
            self.chunks += 1
        return found


def check_index(info: ObjectInfo, index: list[StoredChunk]) -> list[StoredChunk]:
    """Return the chunks of an object. Raises `ObjectIncomplete` where some are missing."""
    found = index[: info.chunks or 0]
    size = sum(chunk.size for chunk in found)
    if len(found) != (info.chunks or 0) or size != (info.size or 0):
        raise ObjectIncomplete(
            f"object {info.name!r} has {len(found)} chunks of {size} bytes, its description says"
            f" {info.chunks or 0} of {info.size or 0}"
        )
    return found


def resumed_at(index: list[StoredChunk], size: int) -> tuple[int, int]:
    """Return how many whole chunks so many bytes of content hold, and how many bytes these are."""
    count = at = 0
    for chunk in index:
        if at + chunk.size > size:
            break
        at += chunk.size
        count += 1
    return count, at

"""Split the content of an object into chunks, and reassemble it."""

from __future__ import annotations

import hashlib
from collections import deque
from collections.abc import Iterator
from typing import Final

from attrs import frozen

from twinstream.core.object_store.info import digest_bytes, digest_text
from twinstream.errors import (
    BadArgument,
    DigestMismatch,
    InvalidObjectInfo,
    ObjectChanged,
    ObjectIncomplete,
)
from twinstream.models import ObjectInfo
from twinstream.models.digits import natural

__all__ = [
    "CHUNK_SIZE",
    "Chunker",
    "Content",
    "ContentRange",
    "ObjectProgress",
    "StoredChunk",
    "check_index",
    "chunk_size",
    "resumed_at",
    "sent_number",
]

CHUNK_SIZE: Final = 128 * 1024
"""The default size of a chunk in bytes. Other clients use the same size."""

# Bytes reserved for the headers of a chunk: the message id, the expected stream, and headers that
# servers may add in transit.
_HEADERS: Final = 512


@frozen(kw_only=True)
class ObjectProgress:
    """The progress of storing or reading an object, in bytes."""

    name: str
    """Name of the object."""
    transferred: int
    """The bytes of content that the server has acknowledged, or that the caller has read."""
    size: int | None
    """The size of the content in bytes; None if it is not known before the end."""


def chunk_size(wanted: int | None, max_payload: int, max_msg_size: int | None) -> int:
    """Return the size of chunks in bytes.

    It is `wanted` (by default 128 KiB), or the largest possible size if that is smaller. Raises
    `BadArgument` if messages are too small for chunks.
    """
    most = max_payload
    if max_msg_size is not None and max_msg_size > 0:
        most = min(most, max_msg_size)
    if most <= _HEADERS:
        raise BadArgument(
            f"messages of at most {most} bytes are too small for chunks: raise max_payload of the"
            " server or max_msg_size of the stream"
        )
    return min(wanted or CHUNK_SIZE, most - _HEADERS)


class Chunker:
    """A converter of pieces of any size to chunks of one size, which also computes the hash.

    The owner passes each piece to `hash` and to `cut`.
    """

    def __init__(self, size: int) -> None:
        self.chunk_size: Final = size
        self.sha: Final = hashlib.sha256()
        self.size = 0
        """The number of bytes passed to `cut` so far."""
        self._rest = bytearray()

    def hash(self, piece: memoryview) -> None:
        """Add a piece to the hash. Hashing releases the GIL, so other threads can run."""
        self.sha.update(piece)

    def cut(self, piece: memoryview) -> Iterator[bytes]:
        """Add a piece, and yield the chunks that it completes."""
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
        """Return the bytes of the last chunk, which may be empty."""
        return bytes(self._rest)


@frozen
class StoredChunk:
    """A stored chunk: its sequence, and its size in bytes."""

    seq: int
    size: int


class Content:
    """The received content of an object, whose chunks arrive in order.

    Each chunk is withheld until another one arrives, and the last one until the hash of all chunks
    was compared with the metadata. Other clients end an object with an empty message, which the
    metadata does not count. So empty messages are skipped.
    """

    def __init__(self, info: ObjectInfo) -> None:
        self._info: Final = info
        self._sha: Final = hashlib.sha256()
        self._wanted: Final = _digest(info)
        self._last: bytes | None = None
        self.chunks = 0
        """The number of chunks so far, including the withheld one."""
        self.size = 0
        """The size of these chunks in bytes."""
        self.total: Final = info.size or 0
        """The size of the whole content in bytes."""
        self.is_whole = False
        """Whether the content is complete and verified."""
        self._finish()

    def resume(self, piece: bytes) -> None:
        """Add a piece that an earlier attempt received. Call `resumed` after the last piece."""
        self._sha.update(piece)
        self.size += len(piece)

    def resumed(self, chunks: int) -> None:
        """Set the number of chunks that an earlier attempt received.

        Raises `DigestMismatch` if they are the whole content but do not match the metadata.
        """
        self.chunks = chunks
        self._finish()

    def take(self, payloads: list[bytes]) -> list[bytes]:
        """Add further chunks; return those that are no longer withheld.

        Chunks beyond the number in the metadata are ignored. Raises `DigestMismatch` if the content
        does not match the metadata.
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
        """Verify the content if it is complete."""
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
        raise InvalidObjectInfo(f"object {info.name!r}: {error}") from error


class ContentRange:
    """The received part of an object's content from byte `start` to `end`, which is exclusive.

    A part cannot be compared with the digest. Instead, the size of each chunk is compared with
    `index`, which lists the chunks.
    """

    def __init__(self, info: ObjectInfo, index: list[StoredChunk], start: int, end: int) -> None:
        self._info: Final = info
        self._start: Final = start
        self._end: Final = end
        self._left: Final = deque(index)
        self.total: Final = max(end - start, 0)
        """The size of the range in bytes."""
        self._at = 0
        while self._left and self._at + self._left[0].size <= start:
            self._at += self._left.popleft().size
        self.first_seq: Final = self._left[0].seq if self._left else 1
        """The sequence of the first chunk that has bytes of the range, 1 if there is none."""
        self.chunks = len(index) - len(self._left)
        """The number of chunks received so far, plus the number of chunks before the range."""

    @property
    def is_whole(self) -> bool:
        """Whether the range is complete."""
        return self._at >= self._end or self._start >= self._end

    def take(self, seqs: list[int], payloads: list[bytes]) -> list[bytes]:
        """Add further chunks; return their bytes that are in the range.

        A replica that lags may send chunks that are not in the index, because an upload has removed
        them. They are skipped. Raises `ObjectChanged` if a chunk of the index is missing or has
        another size.
        """
        found: list[bytes] = []
        for seq, payload in zip(seqs, payloads, strict=True):
            if self.is_whole or not self._left:
                break
            if seq < self._left[0].seq:
                continue
            listed = self._left.popleft()
            size = listed.size
            if seq != listed.seq or len(payload) != size:
                raise ObjectChanged(
                    f"object {self._info.name!r}: a chunk has {len(payload)} bytes and the sequence"
                    f" {seq}, {size} bytes at {listed.seq} were listed before"
                )
            begin, end = max(self._start - self._at, 0), self._end - self._at
            found.append(payload[begin:end])
            self._at += size
            self.chunks += 1
        return found


def sent_number(msg_id: str | None, nuid: str | None) -> int | None:
    """Return the number of a chunk in the order of sending, None if another client has sent it."""
    prefix, _, number = (msg_id or "").rpartition(".")
    return natural(number) if prefix and prefix == nuid else None


def check_index(info: ObjectInfo, index: list[StoredChunk]) -> list[StoredChunk]:
    """Return the chunks of the content in `index`. Raises `ObjectIncomplete` if any is missing."""
    found = index[: info.chunks or 0]
    size = sum(chunk.size for chunk in found)
    if len(found) != (info.chunks or 0) or size != (info.size or 0):
        raise ObjectIncomplete(
            f"object {info.name!r} has {len(found)} chunks of {size} bytes, its description says"
            f" {info.chunks or 0} of {info.size or 0}"
        )
    return found


def resumed_at(index: list[StoredChunk], size: int) -> tuple[int, int]:
    """Return the number of complete chunks in the first `size` bytes, and their total size."""
    count = at = 0
    for chunk in index:
        if at + chunk.size > size:
            break
        at += chunk.size
        count += 1
    return count, at

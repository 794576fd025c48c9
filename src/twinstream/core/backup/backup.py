"""Backups of streams: what they are made of, and how the server's chunks become one.

The archive is the server's own, byte for byte. Source: nats-server 2.11 to 2.15; the folder is the
one that the `nats` command line writes and reads.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any, Final

from attrs import frozen

from twinstream.errors import BadAnswer, JetStreamError
from twinstream.core.wire.headers import parse_status
from twinstream.core.wire.protocol import Frame
from twinstream.core.backup.s2_frames import S2Frames
from twinstream.models import StreamConfig, StreamState

__all__ = ["DATA_FILE", "META_FILE", "SUMS_FILE", "Backup", "SnapshotChunks", "TransferProgress"]

DATA_FILE: Final = "stream.tar.s2"
META_FILE: Final = "backup.json"
SUMS_FILE: Final = "SHA256SUMS"

_ACK: Final = b"$JS.SNAPSHOT.ACK."
_DONE: Final = 204


@frozen(kw_only=True)
class Backup:
    """A backup in a folder."""

    path: Path
    config: StreamConfig
    """The stream's configuration when the backup was made."""
    state: StreamState
    """What the backup holds at least: the stream's state when the server began.

    Messages that were stored while it was being made may be in it besides.
    """
    size: int
    """Bytes of the archive."""
    sha256: str | None
    """The archive's checksum, None where the folder has none (the `nats` command writes none)."""
    members: dict[str, Any]
    """Configuration and state as the server gave them."""

    @property
    def stream(self) -> str:
        """The stream's name."""
        return self.config.name or ""


@frozen(kw_only=True)
class TransferProgress:
    """How far a backup or restore has come, in bytes."""

    transferred: int
    """Bytes of the archive that were received or sent."""
    size: int | None
    """All bytes of the archive; None while it is being made."""
    unpacked: int
    """Bytes of the stream that these hold, as the server stores them."""
    expected: int
    """Bytes that the stream holds; `unpacked` grows to some percent more or less than this."""


class SnapshotChunks:
    """Puts the chunks of a snapshot together, and notices when one is missing."""

    def __init__(self, stream: str) -> None:
        self._stream: Final = stream
        self._frames: Final = S2Frames()
        self._index = 0
        self.size = 0
        self.ended = False

    @property
    def unpacked(self) -> int:
        """Bytes of the stream that the chunks hold."""
        return self._frames.unpacked

    def take(self, frame: Frame) -> bytes:
        """Return the bytes of a chunk, none at the end, after which `ended` is set.

        Raises `JetStreamError` when the server gave up, `BadAnswer` when the archive has a hole.
        """
        _, reply, header_size, body = frame
        data = body[header_size:-2]
        if not data:
            self._end(body[:header_size])
            return b""
        if reply.startswith(_ACK):
            self._check(reply, len(data))
        self.size += len(data)
        self._frames.feed(data)
        return data

    def _check(self, reply: bytes, size: int) -> None:
        """Compare what came with the length and the number that the server put in the reply."""
        self._index += 1
        length, index = reply.split(b".")[-2:]
        if (length, index) != (b"%d" % size, b"%d" % self._index):
            raise BadAnswer(
                f"backup of {self._stream}: chunk {self._index} is missing or cut short;"
                f" {size} bytes came for {reply.decode(errors='replace')}"
            )

    def _end(self, block: bytes) -> None:
        code, text = parse_status(block)
        # A small snapshot ends with an empty message without a status.
        if code not in {0, _DONE}:
            raise JetStreamError(
                f"backup of {self._stream}: the server gave up: {code} {text}",
                code=code,
                err_code=0,
            )
        if not self._frames.whole:
            reason = self._frames.trouble or "its last frame is cut short"
            raise BadAnswer(f"backup of {self._stream}: the archive is damaged: {reason}")
        self.ended = True

"""Backups of streams: their files, and the assembly of the server's chunks.

The archive is the server's own, byte for byte. Source: nats-server 2.11 to 2.15. The folder has the
format of the `nats` command line.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any, Final

from twinstream.core.backup.s2_frames import S2Frames
from twinstream.core.wire.headers import parse_status
from twinstream.core.wire.protocol import Frame
from twinstream.errors import BadAnswer, JetStreamError
from twinstream.models import StreamConfig, StreamState
from twinstream.models.records import frozen

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
    """Minimum contents of the backup: the state of the stream when the server began.

    The backup may also have messages that were stored while it was made.
    """
    size: int
    """Bytes of the archive."""
    sha256: str | None
    """The archive's checksum, None if the folder has none (the `nats` command writes none)."""
    members: dict[str, Any]
    """Configuration and state as sent by the server."""

    @property
    def stream(self) -> str:
        """The stream's name."""
        return self.config.name or ""


@frozen(kw_only=True)
class TransferProgress:
    """The progress of a backup or restore, in bytes."""

    transferred: int
    """Bytes of the archive that were received or sent."""
    size: int | None
    """Total size of the archive; None while it is made."""
    unpacked: int
    """Bytes of the stream in the transferred part, as the server stores them."""
    expected: int
    """Bytes of the stream; the final value of `unpacked` may differ from it by some percent."""


class SnapshotChunks:
    """Assembles the chunks of a snapshot, and detects missing ones."""

    def __init__(self, stream: str) -> None:
        self._stream: Final = stream
        self._frames: Final = S2Frames()
        self._index = 0
        self.size = 0
        self.ended = False

    @property
    def unpacked(self) -> int:
        """Bytes of the stream in the chunks."""
        return self._frames.unpacked

    def take(self, frame: Frame) -> bytes:
        """Return the bytes of a chunk. At the end return `b""` and set `ended`.

        Raises `JetStreamError` if the server reports an error, and `BadAnswer` if the archive is
        incomplete.
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
        """Compare a chunk with the length and number that the server put in the reply subject."""
        self._index += 1
        length, index = reply.split(b".")[-2:]
        if (length, index) != (b"%d" % size, b"%d" % self._index):
            raise BadAnswer(
                f"backup of {self._stream}: chunk {self._index} is missing or incomplete;"
                f" {size} bytes arrived for {reply.decode(errors='replace')}"
            )

    def _end(self, block: bytes) -> None:
        code, text = parse_status(block)
        # A small snapshot ends with an empty message without a status.
        if code not in {0, _DONE}:
            raise JetStreamError(
                f"backup of {self._stream}: the server failed: {code} {text}",
                code=code,
                err_code=0,
            )
        if not self._frames.whole:
            reason = self._frames.trouble or "its last frame is incomplete"
            raise BadAnswer(f"backup of {self._stream}: the archive is damaged: {reason}")
        self.ended = True

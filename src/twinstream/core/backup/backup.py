"""Backups of streams: the files in a backup folder, and the chunks that the server sends.

The archive is stored exactly as the server sends it. Source: nats-server 2.11 to 2.15. The folder
has the format of the `nats` command line.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any, Final

from attrs import frozen

from twinstream.core.backup.s2_frames import S2Frames
from twinstream.core.wire.headers import parse_status
from twinstream.core.wire.protocol import Frame
from twinstream.errors import InvalidResponse, JetStreamError
from twinstream.models import StreamConfig, StreamState

__all__ = ["DATA_FILE", "META_FILE", "SUMS_FILE", "Backup", "SnapshotChunks", "TransferProgress"]

DATA_FILE: Final = "stream.tar.s2"
META_FILE: Final = "backup.json"
SUMS_FILE: Final = "SHA256SUMS"

_ACK: Final = b"$JS.SNAPSHOT.ACK."
_DONE: Final = 204


@frozen(kw_only=True)
class Backup:
    """A backup of a stream, which is stored in a folder."""

    path: Path
    """The folder of the backup."""
    config: StreamConfig
    """The stream's configuration when the backup was made."""
    state: StreamState
    """The state of the stream when the server began the backup.

    The backup may also contain messages that were stored during the backup.
    """
    size: int
    """The size of the archive in bytes."""
    sha256: str | None
    """The checksum of the archive; None if the folder has none, as after `nats stream backup`."""
    members: dict[str, Any]
    """The configuration and the state as the server sent them."""

    @property
    def stream_name(self) -> str:
        """The stream's name."""
        return self.config.name or ""


@frozen(kw_only=True)
class TransferProgress:
    """The progress of a backup or restore, in bytes."""

    transferred: int
    """The number of bytes of the archive that were received or sent so far."""
    size: int | None
    """The size of the archive. None for a backup, whose archive is created during the transfer."""
    unpacked: int
    """The uncompressed size of the transferred part."""
    expected: int
    """The size of the stream. At the end, `unpacked` may differ from it by some percent."""


class SnapshotChunks:
    """The received chunks of a snapshot, which are checked for gaps."""

    def __init__(self, stream: str) -> None:
        self._stream: Final = stream
        self._frames: Final = S2Frames()
        self._index = 0
        self.size = 0
        self.ended = False

    @property
    def unpacked(self) -> int:
        """The uncompressed size of the chunks so far."""
        return self._frames.unpacked

    def take(self, frame: Frame) -> bytes:
        """Return the bytes of a chunk. At the end of the snapshot return `b""` and set `ended`.

        Raises `JetStreamError` if the server reports an error, and `InvalidResponse` if a chunk is
        missing or the archive is incomplete.
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
        """Raise `InvalidResponse` unless the reply subject has size and number of this chunk."""
        self._index += 1
        length, index = reply.split(b".")[-2:]
        if (length, index) != (b"%d" % size, b"%d" % self._index):
            raise InvalidResponse(
                f"backup of {self._stream}: chunk {self._index} is missing or incomplete;"
                f" {size} bytes arrived for {reply.decode(errors='replace')}"
            )

    def _end(self, block: bytes) -> None:
        """End the archive at its final message, which has the header block `block`.

        Raises `JetStreamError` if the server reports a failure, and `InvalidResponse` if the
        archive is damaged.
        """
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
            raise InvalidResponse(f"backup of {self._stream}: the archive is damaged: {reason}")
        self.ended = True

"""Parse the frames of an S2 stream, to detect an incomplete archive without unpacking it.

S2 is an extension of Snappy. A frame has a byte for its kind, three bytes for the length of its
body, and the body. A compressed body begins with a checksum and its unpacked length.
"""

from __future__ import annotations

from typing import Final

__all__ = ["S2Frames"]

_COMPRESSED: Final = 0x00
_PLAIN: Final = 0x01
_BEGIN: Final = 0xFF
_HEAD: Final = 4
_CHECKSUM: Final = 4
# Bytes needed to process a frame: its head, a checksum, and a length in base 128.
_NEEDED_BYTES: Final = _HEAD + _CHECKSUM + 5
_NAMES: Final = (b"S2sTwO", b"sNaPpY")


class S2Frames:
    """A parser of the frames of an archive that arrives in pieces.

    `unpacked` is the number of unpacked bytes of the frames so far. `trouble` is the reason if the
    archive is not a valid S2 stream, else it is empty.
    """

    def __init__(self) -> None:
        self.unpacked = 0
        self.trouble = ""
        self._begun = False
        self._rest = b""
        self._skip = 0

    @property
    def whole(self) -> bool:
        """Whether the data so far consists of complete frames of a valid stream."""
        return self._begun and not (self.trouble or self._rest or self._skip)

    def feed(self, data: bytes) -> None:
        """Process the next piece."""
        at = 0
        while at < len(data) and not self.trouble:
            if self._skip:
                step = min(self._skip, len(data) - at)
                self._skip -= step
                at += step
                continue
            # The head of a frame may be spread over several pieces.
            head = self._rest + data[at : at + _NEEDED_BYTES]
            size = self._read_head(head)
            if size is None:
                self._rest = head
                return
            at -= len(self._rest)
            self._rest = b""
            step = min(size, len(data) - at)
            self._skip = size - step
            at += step

    def _read_head(self, head: bytes) -> int | None:
        """Process the beginning of a frame, and return the size of the frame in bytes.

        Return None if `head` does not yet contain the whole beginning of the frame.
        """
        if len(head) < _HEAD:
            return None
        kind, length = head[0], int.from_bytes(head[1:_HEAD], "little")
        needed = min(_HEAD + length, _NEEDED_BYTES)
        if len(head) < needed:
            return None
        if kind == _BEGIN:
            if head[_HEAD : _HEAD + length] not in _NAMES:
                self.trouble = "it does not begin like an S2 stream"
            self._begun = True
        elif not self._begun:
            self.trouble = "it does not begin like an S2 stream"
        elif kind == _COMPRESSED:
            self.unpacked += _base128(head[_HEAD + _CHECKSUM :])
        elif kind == _PLAIN:
            self.unpacked += max(length - _CHECKSUM, 0)
        elif kind < 0x80:
            # Readers may skip frames of the other unknown kinds, from 0x80 on.
            self.trouble = f"it contains a frame of an unknown kind, {kind}"
        return _HEAD + length


def _base128(data: bytes) -> int:
    number = 0
    for place, byte in enumerate(data):
        number |= (byte & 0x7F) << (7 * place)
        if byte < 0x80:
            break
    return number

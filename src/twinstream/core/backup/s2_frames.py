"""The frames of an S2 stream, read just enough to tell a whole archive from one cut short.

Nothing is unpacked. S2 is an extension of Snappy with the same framing: a kind, three bytes of
length, the body; compressed bodies tell their unpacked length.
"""

from __future__ import annotations

from typing import Final

__all__ = ["S2Frames"]

_COMPRESSED: Final = 0x00
_PLAIN: Final = 0x01
_BEGIN: Final = 0xFF
_HEAD: Final = 4
_CHECKSUM: Final = 4
# Bytes of a frame that tell all about it: its head, a checksum, and a length in base 128.
_ENOUGH: Final = _HEAD + _CHECKSUM + 5
_NAMES: Final = (b"S2sTwO", b"sNaPpY")


class S2Frames:
    """Walks over the frames of an archive that comes in pieces.

    `unpacked` counts the unpacked bytes of the frames seen so far; `trouble` says why this is not
    an S2 stream, and is empty as long as all is well.
    """

    def __init__(self) -> None:
        self.unpacked = 0
        self.trouble = ""
        self._begun = False
        self._rest = b""
        self._skip = 0

    @property
    def whole(self) -> bool:
        """Whether the data so far ends at the end of a frame."""
        return self._begun and not (self.trouble or self._rest or self._skip)

    def feed(self, data: bytes) -> None:
        """Take the next piece."""
        at = 0
        while at < len(data) and not self.trouble:
            if self._skip:
                step = min(self._skip, len(data) - at)
                self._skip -= step
                at += step
                continue
            # A frame's beginning may be spread over pieces.
            head = self._rest + data[at : at + _ENOUGH]
            size = self._enter(head)
            if size is None:
                self._rest = head
                return
            at -= len(self._rest)
            self._rest = b""
            step = min(size, len(data) - at)
            self._skip = size - step
            at += step

    def _enter(self, head: bytes) -> int | None:
        """Return the size of the frame that begins here, None when too little of it is there."""
        if len(head) < _HEAD:
            return None
        kind, length = head[0], int.from_bytes(head[1:_HEAD], "little")
        needed = min(_HEAD + length, _ENOUGH)
        if len(head) < needed:
            return None
        if kind == _BEGIN:
            if head[_HEAD : _HEAD + length] not in _NAMES:
                self.trouble = "it does not begin as an S2 stream does"
            self._begun = True
        elif not self._begun:
            self.trouble = "it does not begin as an S2 stream does"
        elif kind == _COMPRESSED:
            self.unpacked += _base128(head[_HEAD + _CHECKSUM :])
        elif kind == _PLAIN:
            self.unpacked += max(length - _CHECKSUM, 0)
        elif kind < 0x80:
            self.trouble = f"it holds a frame of an unknown kind, {kind}"
        return _HEAD + length


def _base128(data: bytes) -> int:
    number = 0
    for place, byte in enumerate(data):
        number |= (byte & 0x7F) << (7 * place)
        if byte < 0x80:
            break
    return number

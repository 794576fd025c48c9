"""The pin of a pinned client: which id the server gave, and when it was lost.

Source: ADR-42 and nats-server 2.11. The id is one per consumer and group, so all pulls of a
consumer object share it. It is no promise of exclusivity: messages may be on the way to two
clients while the pin moves.
"""

from __future__ import annotations

import re
from typing import Final

from twinstream.core.wire.protocol import Frame

__all__ = ["Pins", "pin_of", "pin_size"]

_NAME: Final = b"\r\nNats-Pin-Id:"
_LINE: Final = re.compile(_NAME + rb" ?([^\r]*)")
_EMPTY_BLOCK: Final = len(b"NATS/1.0\r\n\r\n")


def pin_of(frame: Frame) -> str | None:
    """Return the pin id that a message carries."""
    found = _line(frame)
    return found.group(1).decode("utf-8", "replace") if found else None


def pin_size(frame: Frame) -> int:
    """Return the bytes that the pin added after the server had measured the message."""
    found = _line(frame)
    if found is None:
        return 0
    line = found.end() - found.start()
    alone = frame[2] == line + _EMPTY_BLOCK
    return line + _EMPTY_BLOCK if alone else line


def _line(frame: Frame) -> re.Match[bytes] | None:
    """Return the line of the pin: the last of that name, where a publisher copied one before."""
    _, _, header_size, body = frame
    start = body.rfind(_NAME, 0, header_size)
    return _LINE.match(body, start, header_size) if start >= 0 else None


class Pins:
    """The pins of one consumer object, by group."""

    def __init__(self) -> None:
        self._ids: dict[str, str] = {}

    def get(self, group: str) -> str | None:
        """Return the id to send with pulls of a group."""
        return self._ids.get(group)

    def note(self, group: str, pin: str) -> bool:
        """Keep the id that a message carried; tell whether it is a new one."""
        new = self._ids.get(group) != pin
        self._ids[group] = pin
        return new

    def drop(self, group: str) -> bool:
        """Forget the id, because the server says another client holds the pin."""
        return self._ids.pop(group, None) is not None

"""The pin of a client in a priority group, an id that the server assigns to one client at a time.

Source: ADR-42 and nats-server 2.11. There is one id per consumer and group, so all pulls of a
consumer object share it. A pin does not guarantee exclusivity. When the server pins another client,
messages may be in flight to both clients.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Final

from twinstream.core.wire.protocol import Frame

__all__ = ["Pins", "pin_of", "pin_size"]

_NAME: Final = b"\r\nNats-Pin-Id:"
_LINE: Final = re.compile(_NAME + rb" ?([^\r]*)")
_EMPTY_BLOCK: Final = len(b"NATS/1.0\r\n\r\n")


def pin_of(frame: Frame) -> str | None:
    """Return the pin id in the headers of a message, None if there is none."""
    found = _line(frame)
    return found.group(1).decode("utf-8", "replace") if found else None


def pin_size(frame: Frame) -> int:
    """Return the bytes that the pin header adds to a message, 0 if there is none.

    The server adds the header after it has measured the message. If the message has no other
    header, the bytes include the rest of the header block.
    """
    found = _line(frame)
    if found is None:
        return 0
    line = found.end() - found.start()
    alone = frame[2] == line + _EMPTY_BLOCK
    return line + _EMPTY_BLOCK if alone else line


def _line(frame: Frame) -> re.Match[bytes] | None:
    """Match the last header of this name, which is the server's.

    A publisher that copied the headers of a received message may have stored an earlier one.
    """
    _, _, header_size, body = frame
    start = body.rfind(_NAME, 0, header_size)
    return _LINE.match(body, start, header_size) if start >= 0 else None


class Pins:
    """The pins of one consumer object, by group."""

    def __init__(self) -> None:
        self._ids: dict[str, str] = {}
        self.on_drop: Callable[[], None] | None = None
        """Called when another client was pinned, even if this client was pinned again since."""

    def get(self, group: str) -> str | None:
        """Return the id to send with pulls for `group`, None without a pin."""
        return self._ids.get(group)

    def note(self, group: str, pin: str) -> bool:
        """Store the id found in a message; return whether it differs from the stored one.

        If another id was stored, call `on_drop`.
        """
        known = self._ids.get(group)
        if known == pin:
            return False
        self._ids[group] = pin
        if known is not None and self.on_drop is not None:
            self.on_drop()
        return True

    def drop(self, group: str) -> bool:
        """Remove the id, because another client holds the pin; return whether there was an id."""
        if self._ids.pop(group, None) is None:
            return False
        if self.on_drop is not None:
            self.on_drop()
        return True

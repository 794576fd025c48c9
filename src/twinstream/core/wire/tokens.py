"""Unique subject tokens: inboxes, request tokens, generated consumer names.

The random part is injected once and a counter does the rest, so nothing here draws randomness.
"""

from __future__ import annotations

from itertools import count
from typing import Final

__all__ = ["INBOX", "Tokens", "base62"]

INBOX: Final = "_INBOX"
_DIGITS: Final = "0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz"


def base62(number: int) -> str:
    """Return a natural number in digits that every subject and name may hold."""
    digits = ""
    while True:
        number, rest = divmod(number, 62)
        digits = _DIGITS[rest] + digits
        if not number:
            return digits


class Tokens:
    """Makes tokens that no other connection makes.

    `seed` is 16 random bytes; `inbox` replaces `_INBOX` where permissions ask for another prefix.
    """

    def __init__(self, seed: bytes, inbox: str = INBOX) -> None:
        self._unique: Final = base62(int.from_bytes(seed, "big"))
        self._inbox: Final = inbox
        self._numbers = count(1)

    def next(self) -> str:
        """Return a token that was never returned before."""
        return str(next(self._numbers))

    def next_bytes(self) -> bytes:
        """Return such a token as bytes for the wire."""
        return b"%d" % next(self._numbers)

    def inbox(self) -> str:
        """Return the subject of a new inbox; subscribe to it, or to it with `.*` appended."""
        return f"{self._inbox}.{self._unique}.{self.next()}"

    def name(self) -> str:
        """Return a unique name for a stream or consumer."""
        return f"{self._unique}{self.next()}"

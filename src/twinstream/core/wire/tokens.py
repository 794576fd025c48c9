"""Unique subject tokens for inboxes, requests and generated consumer names.

The caller passes random bytes once, and a counter distinguishes the tokens. So this module has no
randomness.
"""

from __future__ import annotations

from itertools import count
from typing import Final

__all__ = ["INBOX", "Tokens", "base62"]

INBOX: Final = "_INBOX"
_DIGITS: Final = "0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz"


def base62(number: int) -> str:
    """Return a natural number in base 62. All digits are valid in subjects and names."""
    digits = ""
    while True:
        number, rest = divmod(number, 62)
        digits = _DIGITS[rest] + digits
        if not number:
            return digits


class Tokens:
    """A generator of tokens for one connection.

    `seed` is 16 random bytes. `inbox` replaces the prefix `_INBOX` if permissions require another.
    """

    def __init__(self, seed: bytes, inbox: str = INBOX) -> None:
        self._unique: Final = base62(int.from_bytes(seed, "big"))
        self.inbox_prefix: Final = inbox
        self._numbers = count(1)

    def next(self) -> str:
        """Return a token that is unique in this connection."""
        return str(next(self._numbers))

    def next_bytes(self) -> bytes:
        """Return a token that is unique in this connection, as bytes."""
        return b"%d" % next(self._numbers)

    def inbox(self) -> str:
        """Return the subject of a new inbox.

        Callers subscribe to the subject itself, or to the subject followed by `.*`.
        """
        return f"{self.inbox_prefix}.{self._unique}.{self.next()}"

    def name(self) -> str:
        """Return a unique name for a stream or consumer."""
        return f"{self._unique}{self.next()}"

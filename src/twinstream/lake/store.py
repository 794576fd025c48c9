"""Where plans and entries are stored: small objects that are created once and never changed."""

from __future__ import annotations

from typing import Protocol

__all__ = ["KeyTaken", "Store"]


class KeyTaken(Exception):
    """Raised by `Store.create` if there is an object with the key already."""


class Store(Protocol):
    """Objects by their keys, which are relative paths such as `orders/plan/7.json`.

    An object is whole or does not exist. It is durable when `create` returns.
    """

    def create(self, key: str, data: bytes) -> None:
        """Store an object, or raise `KeyTaken` if there is one with the key.

        Of several callers at the same time, exactly one stores its object.
        """
        ...

    def get(self, key: str) -> bytes | None:
        """Return the object with a key, or `None` if there is none."""
        ...

    def names(self, folder: str) -> list[str]:
        """Return the last parts of the keys directly below a folder, in their order."""
        ...

    def folders(self) -> list[str]:
        """Return the first parts of the keys that have several, in their order."""
        ...

    def delete(self, key: str) -> None:
        """Delete an object, if there is one."""
        ...

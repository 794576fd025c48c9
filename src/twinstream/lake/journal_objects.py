"""The objects of one source in a store: JSON objects that are created once."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, Final, TypeVar, cast

from twinstream.core.wire.response import read_json, write_json
from twinstream.lake.errors import JournalError
from twinstream.lake.store import KeyTaken, Store
from twinstream.models.files.bounded_read import LARGEST

__all__ = ["JournalObjects"]

_T = TypeVar("_T")


class JournalObjects:
    """The objects of the source `source`. Their names are keys without the source."""

    def __init__(self, store: Store, source: str) -> None:
        self._store: Final = store
        self._source: Final = source

    def settle(
        self, name: str, value: Mapping[str, Any], make: Callable[[dict[str, Any]], _T]
    ) -> _T:
        """Store an object, unless there is one with the name, and return the one that is stored."""
        data = write_json(value)
        try:
            self.create(name, data)
        except KeyTaken:
            found = self.read(name, make)
        else:
            found = self.made(name, lambda: read_json(data), make)
        if found is None:
            raise JournalError(f"{self.key(name)} was removed while it was written")
        return found

    def read(self, name: str, make: Callable[[dict[str, Any]], _T]) -> _T | None:
        """Return what `make` makes of an object, or `None` if there is none.

        Raises `JournalError` if the object is damaged.
        """
        data = self.get(name)
        return None if data is None else self.made(name, lambda: read_json(data), make)

    def made(
        self, name: str, value: Callable[[], object], make: Callable[[dict[str, Any]], _T]
    ) -> _T:
        """Return what `make` makes of the value of an object. Raises as `read` does."""
        try:
            return make(cast("dict[str, Any]", value()))
        except (ValueError, TypeError, KeyError, AttributeError) as error:
            raise JournalError(
                f"{self.key(name)} in the journal cannot be read ({error}); another program"
                " changed it: restore it, or land into a new folder"
            ) from error

    def has(self, name: str) -> bool:
        """Return whether there is an object."""
        return self.get(name) is not None

    def get(self, name: str) -> bytes | None:
        """Return an object as it is stored, or `None` if there is none."""
        return self._store.get(self.key(name))

    def create(self, name: str, data: bytes) -> None:
        """Store an object, or raise `KeyTaken` if there is one with the name.

        Raises `JournalError` if the object would be too large to be read again.
        """
        if len(data) > LARGEST:
            raise JournalError(
                f"{self.key(name)} would have more than {LARGEST >> 20} MiB, and no command could"
                " read it again; it was not stored: give fewer subjects, or replay a smaller range"
                " of dead letters (--from, --to)"
            )
        self._store.create(self.key(name), data)

    def delete(self, name: str) -> None:
        """Delete an object, if there is one."""
        self._store.delete(self.key(name))

    def names(self, folder: str) -> list[str]:
        """Return the names of the objects in a folder, without the folder, in their order."""
        return self._store.names(self.key(folder))

    def key(self, name: str) -> str:
        """Return the key of an object in the store."""
        return f"{self._source}/{name}"

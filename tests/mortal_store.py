"""A store whose driver dies, or is overtaken, at one of its calls; and a store in memory."""

from __future__ import annotations

from collections.abc import Callable

from twinstream.lake.store import KeyTaken, Store


class MemoryStore:
    """A store that is as good as one of files, and faster."""

    def __init__(self) -> None:
        self._objects: dict[str, bytes] = {}

    def create(self, key: str, data: bytes) -> None:
        if self._objects.setdefault(key, data) is not data:
            raise KeyTaken(key)

    def get(self, key: str) -> bytes | None:
        return self._objects.get(key)

    def names(self, folder: str) -> list[str]:
        found = (
            key.removeprefix(f"{folder}/") for key in [*self._objects] if key.startswith(folder)
        )
        return sorted(name for name in found if "/" not in name)

    def folders(self) -> list[str]:
        return sorted({key.partition("/")[0] for key in self._objects if "/" in key})

    def delete(self, key: str) -> None:
        self._objects.pop(key, None)


class Died(BaseException):
    """The end of a driver."""


def die() -> None:
    raise Died


class MortalStore:
    """A store at one of whose calls, before or after it, something happens: its driver dies."""

    def __init__(self, store: Store, point: int, happens: Callable[[], None] = die) -> None:
        self._store, self._left, self._happens = store, point, happens

    def create(self, key: str, data: bytes) -> None:
        self._step()
        self._store.create(key, data)
        self._step()

    def get(self, key: str) -> bytes | None:
        self._step()
        return self._store.get(key)

    def names(self, folder: str) -> list[str]:
        self._step()
        return self._store.names(folder)

    def folders(self) -> list[str]:
        self._step()
        return self._store.folders()

    def delete(self, key: str) -> None:
        self._step()
        self._store.delete(key)
        self._step()

    def _step(self) -> None:
        self._left -= 1
        if self._left == -1:
            self._happens()

    @property
    def is_reached(self) -> bool:
        return self._left < 0

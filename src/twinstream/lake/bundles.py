"""Bundles of a journal: one object for the plans and entries of many batches.

::

    <source>/bundle/000003000.000.json.gz    the batches 3000 to 3999: each object by its name
    <source>/bundle/000003000.001.json.gz    the same after a replay of some of them

A bundle is created when all its batches have entries, and a later batch has one, too. Then the
objects that it has are deleted, those of lower batches first. If a replay adds entries later, the
next bundle of these batches has them, and replaces the earlier one. So each object is always in the
store, or in the newest bundle of its batch.

Bundles of equal size, instead of one that grows, are written once, and no process has to have the
whole journal in memory.
"""

from __future__ import annotations

import gzip
import re
import zlib
from collections.abc import Iterator, Mapping
from io import BytesIO
from typing import Any, Final, TypeAlias, cast

from twinstream.core.wire.response import read_json, write_json
from twinstream.lake.errors import JournalError
from twinstream.lake.journal_objects import JournalObjects
from twinstream.lake.store import KeyTaken
from twinstream.models.files.bounded_read import LARGEST, bounded

__all__ = ["SPAN", "Bundles", "Content"]

SPAN: Final = 1000
"""The number of batches of a bundle. It has some 50 KB, and unpacked some 800 KB."""

Content: TypeAlias = Mapping[str, dict[str, Any]]
"""The objects of a bundle by their names."""

_NAME: Final = re.compile(r"(\d{9,})\.(\d{3,})\.json\.gz", re.ASCII)


class Bundles:
    """The bundles of one source. `span` is the number of batches of each."""

    def __init__(self, objects: JournalObjects, span: int = SPAN) -> None:
        self._objects: Final = objects
        self.span: Final = span
        # The newest generation of each bundle when they were last listed, by its first batch.
        self._generations: dict[int, int] = {}
        self._loaded: tuple[str, Content] | None = None

    def list(self) -> None:
        """Look which bundles there are."""
        found: dict[int, int] = {}
        for first, generation in self._stored():
            found[first] = max(generation, found.get(first, 0))
        self._generations = found

    def last(self) -> int:
        """Return the last batch of the bundles that were listed, or -1."""
        return max(self._generations, default=-self.span) + self.span - 1

    def object_of(self, batch: int, name: str) -> dict[str, Any] | None:
        """Return an object of a batch from the bundles that were listed, or `None`."""
        first = self.first_of(batch)
        return self._content(first).get(name) if first in self._generations else None

    def contents(self) -> Iterator[Content]:
        """Look which bundles there are, and yield the content of each, ascending."""
        self.list()
        for first in sorted(self._generations):
            yield self._content(first)

    def first_of(self, batch: int) -> int:
        """Return the first batch of the bundle for a batch."""
        return batch - batch % self.span

    def add(self, first: int, objects: Content) -> Content:
        """Store a bundle with objects of batches from `first` on, and return what it has.

        It also has the objects of the earlier bundle of these batches, which is deleted. Of several
        callers at the same time, one stores its bundle; it may lack objects of the others. A bundle
        that would be too large to be read again is not stored.
        """
        self.list()
        earlier: Content = self._content(first) if first in self._generations else {}
        if objects.keys() - earlier.keys():
            # An object of the same name was written by a driver that did not know the bundle.
            text = write_json({**objects, **earlier})
            if len(text) > LARGEST:
                return earlier
            generation = self._generations.get(first, -1) + 1
            try:
                self._objects.create(_name(first, generation), gzip.compress(text, mtime=0))
            except KeyTaken:
                pass  # another caller has stored its bundle, which counts
            self.list()
        for start, generation in list(self._stored()):
            if start == first and generation < self._generations[first]:
                self._objects.delete(_name(start, generation))
        return self._content(first)

    def count(self) -> int:
        """Return the number of objects with bundles."""
        return len(list(self._stored()))

    def _stored(self) -> Iterator[tuple[int, int]]:
        """Yield the first batch and the generation of each bundle in the store."""
        for name in self._objects.names("bundle"):
            match = _NAME.fullmatch(name)
            if match is None or int(match[1]) % self.span:
                raise JournalError(
                    f"{self._objects.key(f'bundle/{name}')} is not a bundle of a journal: another"
                    " program put it there; move it away"
                )
            yield int(match[1]), int(match[2])

    def _content(self, first: int) -> Content:
        """Return the content of the newest bundle from batch `first` on."""
        while True:
            name = _name(first, self._generations[first])
            if self._loaded is not None and self._loaded[0] == name:
                return self._loaded[1]
            data = self._objects.get(name)
            if data is not None:
                self._loaded = name, self._unpack(name, data)
                return self._loaded[1]
            # A newer generation may have replaced the bundle since the bundles were listed.
            before = self._generations[first]
            self.list()
            if self._generations.get(first, before) == before:
                raise JournalError(f"{self._objects.key(name)} was removed; restore it")

    def _unpack(self, name: str, data: bytes) -> Content:
        """Return the content of a bundle. Raises `JournalError` if the data are damaged."""
        try:
            with gzip.GzipFile(fileobj=BytesIO(data)) as file:
                value = read_json(bounded(cast("Any", file)))
            if isinstance(value, dict):
                return cast("Content", value)
            reason = "it is no JSON object"
        except (OSError, EOFError, zlib.error, ValueError) as error:
            reason = str(error)
        raise JournalError(
            f"{self._objects.key(name)} in the journal cannot be read ({reason}); another program"
            " changed it: restore it, or land into a new folder"
        )


def _name(first: int, generation: int) -> str:
    return f"bundle/{first:09}.{generation:03}.json.gz"

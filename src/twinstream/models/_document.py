"""The text of a file, parsed into plain values and their positions."""

from __future__ import annotations

import re
from bisect import bisect_right
from typing import Any, TypeAlias

from attrs import Factory, define, frozen

from twinstream.models.restorable import Restorable

Place: TypeAlias = tuple[int, int]
"""Line and column, both counted from 1."""

MAX_DEPTH = 100
"""Configs are five levels deep; deeper nesting is an accident or an attack."""


@frozen
class Fault:
    """Why a text, or a part of it, cannot be read."""

    place: Place
    message: str
    hint: str = ""


class TextError(Restorable):
    """The text cannot be read at all."""

    def __init__(self, fault: Fault) -> None:
        """Store the position and the reason."""
        super().__init__(fault.message)
        self.fault = fault


@define
class Document:
    """One value of a file, with the positions of all of its parts."""

    value: Any
    places: dict[str, Place]
    """The position of the value at each path."""

    keys: dict[str, Place] = Factory(dict[str, Place])
    """The position of the key of the member at each path."""

    faults: list[Fault] = Factory(list[Fault])
    """Parts that are readable but invalid, such as a duplicate key."""

    oddities: list[Fault] = Factory(list[Fault])
    """Parts that are read in another way than most people expect."""

    def place(self, path: str, *, key: bool = False) -> Place:
        """Return the position of `path`, or of the nearest part that contains it."""
        if key and path in self.keys:
            return self.keys[path]
        while path and path not in self.places:
            path = parent(path)
        return self.places.get(path, (1, 1))


_LINE_END = re.compile(r"\r\n?|\n")
"""A line end for editors and code hosts. YAML has more, such as U+2028."""


class Lines:
    """Converts an offset in a text into line and column."""

    def __init__(self, text: str) -> None:
        """Store the offsets of the lines."""
        self._starts = [0, *(end.end() for end in _LINE_END.finditer(text))]

    def place(self, offset: int) -> Place:
        """Return the position of the character at `offset`."""
        line = bisect_right(self._starts, offset)
        return line, offset - self._starts[line - 1] + 1


def member(path: str, name: str) -> str:
    """Return the path of a member of the object at `path`."""
    return f"{path}.{name}" if path else name


def parent(path: str) -> str:
    """Return the path of the value that contains `path`."""
    return path[: max(path.rfind("."), path.rfind("["), 0)]

"""A file's text, read into plain values that know where they stood."""

from __future__ import annotations

import re
from bisect import bisect_right
from typing import Any, TypeAlias

from attrs import Factory, define, frozen

from twinstream.models.restorable import Restorable

Place: TypeAlias = tuple[int, int]
"""Line and column, both from 1."""

MAX_DEPTH = 100
"""Configs are five levels deep; whatever is deeper is an accident or an attack."""


@frozen
class Fault:
    """Why a text, or a part of it, cannot be read."""

    place: Place
    message: str
    hint: str = ""


class TextError(Restorable):
    """The text cannot be read at all."""

    def __init__(self, fault: Fault) -> None:
        """Carry where and why."""
        super().__init__(fault.message)
        self.fault = fault


@define
class Document:
    """One value of a file, with the places of all of its parts."""

    value: Any
    places: dict[str, Place]
    """Where the value at a path stands."""

    keys: dict[str, Place] = Factory(dict[str, Place])
    """Where the key of the member at a path stands."""

    faults: list[Fault] = Factory(list[Fault])
    """What could be read but should not be there, such as a key that stands twice."""

    oddities: list[Fault] = Factory(list[Fault])
    """What is read otherwise than most people would."""

    def place(self, path: str, *, key: bool = False) -> Place:
        """Return where ``path`` stands, or the nearest thing around it."""
        if key and path in self.keys:
            return self.keys[path]
        while path and path not in self.places:
            path = parent(path)
        return self.places.get(path, (1, 1))


_LINE_END = re.compile(r"\r\n?|\n")
"""What ends a line for editors and code hosts. YAML has more, such as U+2028."""


class Lines:
    """Turns an offset in a text into line and column."""

    def __init__(self, text: str) -> None:
        """Remember where each line begins."""
        self._starts = [0, *(end.end() for end in _LINE_END.finditer(text))]

    def place(self, offset: int) -> Place:
        """Return the place of the character at ``offset``."""
        line = bisect_right(self._starts, offset)
        return line, offset - self._starts[line - 1] + 1


def member(path: str, name: str) -> str:
    """Return the path of a member of the object at ``path``."""
    return f"{path}.{name}" if path else name


def parent(path: str) -> str:
    """Return the path of what ``path`` is a part of."""
    return path[: max(path.rfind("."), path.rfind("["), 0)]

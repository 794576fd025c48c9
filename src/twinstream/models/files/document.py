"""The result of parsing a JSON or YAML file: plain values and their positions in the file."""

from __future__ import annotations

import re
from bisect import bisect_right
from typing import Any, TypeAlias

from attrs import Factory, define, frozen

from twinstream.models.picklable_error import PicklableError

Place: TypeAlias = tuple[int, int]
"""Line and column, both counted from 1."""

MAX_DEPTH = 100
"""The maximum nesting depth of a file. Valid configs have five levels."""


@frozen
class Fault:
    """A fault in the text of a file, with its position."""

    place: Place
    message: str
    hint: str = ""


class TextError(PicklableError):
    """The text of a file or request is not valid JSON or YAML."""

    def __init__(self, fault: Fault) -> None:
        """Store `fault`, which contains the position and the reason."""
        super().__init__(fault.message)
        self.fault = fault


@define
class Document:
    """One parsed value of a file, and the positions of all values in it."""

    value: Any
    places: dict[str, Place]
    """The position of each value, by its path."""

    keys: dict[str, Place] = Factory(dict[str, Place])
    """The position of each key, by the path of its value."""

    faults: list[Fault] = Factory(list[Fault])
    """Faults in text that can be parsed, such as a duplicate key."""

    oddities: list[Fault] = Factory(list[Fault])
    """Values that the parser reads in an unexpected way, such as `010` as octal in YAML."""

    has_units: bool = False
    """Whether durations and sizes may have units, as in YAML."""

    def place(self, path: str, *, key: bool = False) -> Place:
        """Return the position of the value at `path`, or of the nearest value that contains it.

        With `key`, return the position of the key at `path` instead, if it is known.
        """
        if key and path in self.keys:
            return self.keys[path]
        while path and path not in self.places:
            path = parent(path)
        return self.places.get(path, (1, 1))


# The line ends of editors and code hosts. YAML also ends lines at U+2028 and others.
_LINE_END = re.compile(r"\r\n?|\n")


class Lines:
    """The line starts of a text, for converting an offset to line and column."""

    def __init__(self, text: str) -> None:
        """Store the offset of the first character of each line."""
        self._starts = [0, *(end.end() for end in _LINE_END.finditer(text))]

    def place(self, offset: int) -> Place:
        """Return line and column of the character at `offset`."""
        line = bisect_right(self._starts, offset)
        return line, offset - self._starts[line - 1] + 1


def member(path: str, name: str) -> str:
    """Return the path of the member `name` of the object at `path`."""
    return f"{path}.{name}" if path else name


def parent(path: str) -> str:
    """Return the path of the object or list that contains the value at `path`."""
    return path[: max(path.rfind("."), path.rfind("["), 0)]

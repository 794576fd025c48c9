"""Replace the values of members in JSON text. All other bytes stay as they are."""

from __future__ import annotations

import json
import re
from collections import Counter
from collections.abc import Iterable, Sequence
from typing import Final

from twinstream.errors import BadPayload

__all__ = ["Masks"]

HIDDEN: Final = '"***"'
"""The text that replaces a masked string."""

# A string in text that is known to be JSON.
_STRING: Final = re.compile(r'"[^"\\]*(?:\\.[^"\\]*)*"')
_SPACE: Final = re.compile(r"[ \t\n\r]*")
# A number, `true`, `false` or `null`, in text that is known to be JSON.
_WORD: Final = re.compile(r"[-+.\w]+")
_MASKED_WORDS: Final = {"true": "false", "false": "false", "null": "null"}


_Paths = Sequence[tuple[str, tuple[str, ...]]]
_Names = Sequence[tuple[str, str]]


class Masks:
    """The members whose values are masked, and how often each was found.

    A name such as `email` means the members with this name at any depth. A path such as
    `customer.email` begins at the top; it continues in each element of a list, and also means the
    members with this whole name at any depth. Upper and lower case are the same. Strings become
    `"***"`, numbers 0 and truth values false; null stays. In an object or a list, each value is
    masked, and the names stay. JSON within a string is masked like JSON in its place.
    """

    def __init__(self, members: Iterable[str]) -> None:
        """Take the paths of the members. Raises `ValueError` for one with an empty name."""
        paths = {member: tuple(member.casefold().split(".")) for member in members}
        for member, path in paths.items():
            if not all(path):
                raise ValueError(f"{member!r} is not a path of members, such as customer.email")
        self._names: Final = [(member, member.casefold()) for member in paths]
        self._paths: Final = [each for each in paths.items() if len(each[1]) > 1]
        self.found: Final = Counter(dict.fromkeys(paths, 0))
        """The number of masked members by their path."""

    def masked(self, data: bytes) -> bytes:
        """Return a payload with masked members. Masked once more, it stays the same.

        An empty payload stays empty. Raises `BadPayload` for a payload that is not JSON.
        """
        if not self.found or not data:
            return data
        try:
            text = data.decode()
            json.loads(text)
            walk = _Walk(text, self._names, self.found)
            walk.value(0, self._paths, hide=False)
        except (ValueError, RecursionError) as error:
            raise BadPayload(f"it is not JSON: {error}") from error
        return walk.result().encode()


class _Walk:
    """One pass through JSON text, which is known to be valid."""

    def __init__(self, text: str, names: _Names, found: Counter[str]) -> None:
        self._text: Final = text
        self._names: Final = names
        self._found: Final = found
        self._parts: Final[list[str]] = []
        self._copied = 0

    def result(self) -> str:
        """Return the text with masked values."""
        return "".join(self._parts) + self._text[self._copied :]

    def value(self, at: int, paths: _Paths, *, hide: bool) -> int:
        """Pass the value that begins at `at`, and return where it ends.

        `paths` are masks, each with the rest of its path, which begins with a member of this value.
        With `hide`, the value is masked.
        """
        text, at = self._text, self._skip(at)
        first = text[at]
        if first == "{":
            return self._object(at, paths, hide=hide)
        if first == "[":
            at = self._skip(at + 1)
            while text[at] != "]":
                at = self._next(self.value(at, paths, hide=hide))
            return at + 1
        found = (_STRING if first == '"' else _WORD).match(text, at)
        assert found is not None
        if hide:
            shown = HIDDEN if first == '"' else _MASKED_WORDS.get(found[0], "0")
        else:
            shown = self._within(found[0], paths) if first == '"' else found[0]
        if shown != found[0]:
            self._parts.append(text[self._copied : at] + shown)
            self._copied = found.end()
        return found.end()

    def _within(self, string: str, paths: _Paths) -> str:
        """Return a string, in whose content the members are masked if it is JSON."""
        content = json.loads(string)
        if not content.lstrip().startswith(("{", "[", '"')):
            return string
        try:
            json.loads(content)
        except ValueError:
            return string
        walk = _Walk(content, self._names, self._found)
        walk.value(0, paths, hide=False)
        result = walk.result()
        return string if result == content else json.dumps(result)

    def _object(self, at: int, paths: _Paths, *, hide: bool) -> int:
        """Mask the values in an object that begins at `at`; return the position after it.

        `paths` are the masks, each with the rest of its path, which begins with a member of this
        object. With `hide`, all is masked.
        """
        text, at = self._text, self._skip(at + 1)
        while text[at] != "}":
            found = _STRING.match(text, at)
            assert found is not None
            name, colon = json.loads(found[0]).casefold(), self._skip(found.end())
            hits = {mask for mask, rest in paths if rest == (name,)}
            hits |= {mask for mask, folded in self._names if folded == name}
            self._found.update(hits)
            inner = [(mask, rest[1:]) for mask, rest in paths if rest[0] == name and rest[1:]]
            at = self._next(self.value(colon + 1, inner, hide=hide or bool(hits)))
        return at + 1

    def _next(self, at: int) -> int:
        """Return where the next member or element begins, or the bracket that ends them."""
        at = self._skip(at)
        return self._skip(at + 1) if self._text[at] == "," else at

    def _skip(self, at: int) -> int:
        space = _SPACE.match(self._text, at)
        assert space is not None
        return space.end()

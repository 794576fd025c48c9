"""A JSON parser that records positions and is as strict as the server.

`json.loads` cannot be used, because it returns no positions, accepts `NaN`, and drops all but the
last value of a duplicate key. This parser uses only the string scanner of the standard library.
"""

from __future__ import annotations

import re
from json import JSONDecodeError, decoder
from typing import Any, Protocol, cast

from twinstream.models.files.document import MAX_DEPTH, Document, Fault, Lines, TextError, member
from twinstream.models.files.reading import EscapedText, Members, MinusZero, show


class _Scan(Protocol):
    def __call__(self, text: str, at: int, strict: bool, /) -> tuple[str, int]: ...


# The stubs of `json.decoder` lack `scanstring`. It exists since Python 3.0.
_scan_string = cast("_Scan", vars(decoder)["scanstring"])

_BLANK = re.compile(r"[ \t\r\n]*")
_NUMBER = re.compile(r"-?(?:0|[1-9]\d*)(\.\d+)?([eE][+-]?\d+)?", re.ASCII)
_NO_UTF8 = re.compile("[\udc80-\udcff]")
_WORDS = {"true": True, "false": False, "null": None}
# The maximum number of characters in an integer. `int` is slow for much longer text.
_DIGITS_MAX = 400


def read_json(text: str) -> Document:
    """Return the value in `text` with positions. Raises `TextError` if it is not one JSON value."""
    return _Parser(text).document()


def read_as_server(text: str | bytes, *, several: bool = True) -> Members:
    """Return the members that a server reads in the body of a request.

    Empty text and `null` give no members. Bytes that are not UTF-8 are read as U+FFFD. With
    `several`, consecutive objects are merged into one, as servers do for all requests except pull
    requests.

    Raises:
        TextError: The server refuses the body.
    """
    if isinstance(text, bytes):
        text = _NO_UTF8.sub("\ufffd", text.decode(errors="surrogateescape"))
    return _Parser(text).merged(several)


class _Parser:
    def __init__(self, text: str) -> None:
        self.text = text
        self.lines = Lines(text)
        self.read = Document(None, {})

    def document(self) -> Document:
        at = self._skip(0)
        if at == len(self.text):
            raise self._error(at, "the text is empty.")
        self.read.value, at = self._value(at, "", 0)
        at = self._skip(at)
        if at != len(self.text):
            raise self._error(at, "there is more after the end of the value.")
        return self.read

    def merged(self, several: bool) -> Members:
        """Return the members of all objects in the text. Raises `TextError` for other values.

        Unless `several`, a second value is an error. `null` has no members.
        """
        members = Members()
        at = first = self._skip(0)
        while at < len(self.text):
            start = at
            if start != first and not several:
                raise self._error(start, "there is more after the end of the value.")
            value, at = self._value(at, "", 0)
            if isinstance(value, Members):
                for name, item in value.pairs:
                    members.add(name, item)
            elif value is not None:
                raise self._error(start, f"expected an object, got {show(value)}.")
            at = self._skip(at)
        return members

    def _value(self, at: int, path: str, depth: int) -> tuple[Any, int]:
        """Return the value that begins at `at`, and the position after it.

        The position of the value is recorded for `path`.
        """
        if depth > MAX_DEPTH:
            raise self._error(at, f"nested more than {MAX_DEPTH} levels deep.")
        self.read.places[path] = self.lines.place(at)
        letter = self.text[at : at + 1]
        if letter == "{":
            return self._object(at + 1, path, depth)
        if letter == "[":
            return self._array(at + 1, path, depth)
        if letter == '"':
            return self._string(at)
        for word, value in _WORDS.items():
            if self.text.startswith(word, at):
                return value, at + len(word)
        return self._number(at)

    def _object(self, at: int, path: str, depth: int) -> tuple[Members, int]:
        """Return the members of an object, and the position after it. `at` is after its `{`."""
        members = Members()
        at = self._skip(at)
        if self.text[at : at + 1] == "}":
            return members, at + 1
        while True:
            at = self._member(at, members, path, depth)
            letter = self.text[at : at + 1]
            if letter == "}":
                return members, at + 1
            if letter != ",":
                raise self._error(at, "expected , or } here.")
            at = self._skip(at + 1)

    def _member(self, at: int, members: Members, path: str, depth: int) -> int:
        """Add a key and its value to `members`; return the position of the next token.

        A key that occurs twice is recorded as a fault, and both values are added.
        """
        start = at
        if self.text[at : at + 1] != '"':
            raise self._error(at, "expected a key in double quotes here.")
        name, at = self._string(at)
        here = member(path, name)
        if name in members:
            place = self.lines.place(start)
            self.read.faults.append(Fault(place, f"the key {name!r} occurs twice.", "Keep one."))
        self.read.keys[here] = self.lines.place(start)
        at = self._skip(at)
        if self.text[at : at + 1] != ":":
            raise self._error(at, "expected : after the key.")
        value, at = self._value(self._skip(at + 1), here, depth + 1)
        members.add(str(name), value)
        return self._skip(at)

    def _array(self, at: int, path: str, depth: int) -> tuple[list[Any], int]:
        """Return the items of an array, and the position after it. `at` is after its `[`."""
        items: list[Any] = []
        at = self._skip(at)
        if self.text[at : at + 1] == "]":
            return items, at + 1
        while True:
            item, at = self._value(at, f"{path}[{len(items)}]", depth + 1)
            items.append(item)
            at = self._skip(at)
            letter = self.text[at : at + 1]
            if letter == "]":
                return items, at + 1
            if letter != ",":
                raise self._error(at, "expected , or ] here.")
            at = self._skip(at + 1)

    def _string(self, at: int) -> tuple[str, int]:
        try:
            text, end = _scan_string(self.text, at + 1, True)
        except JSONDecodeError as error:
            raise self._error(error.pos, f"the text in quotes is broken: {error.msg}.") from None
        escaped = "\\" in self.text[at:end]
        return (EscapedText(text) if escaped else text), end

    def _number(self, at: int) -> tuple[int | float, int]:
        """Return the number that begins at `at`, and the position after it."""
        match = _NUMBER.match(self.text, at)
        if match is None:
            raise self._error(at, f"expected a value, got {self.text[at : at + 1]!r}.")
        digits = match[0]
        if match[1] or match[2]:
            return float(digits), match.end()
        if len(digits) > _DIGITS_MAX:
            raise self._error(at, f"a number of {len(digits)} digits is out of range.")
        return MinusZero() if digits == "-0" else int(digits), match.end()

    def _skip(self, at: int) -> int:
        match = _BLANK.match(self.text, at)
        return at if match is None else match.end()

    def _error(self, at: int, message: str) -> TextError:
        """Return the error at a position, with a hint if a common mistake explains it."""
        hint = ""
        if at >= len(self.text):
            hint = "The text ends too early."
        elif self.text[at] == "'":
            hint = "JSON takes double quotes only."
        elif self.text.startswith(("//", "#", "/*"), at):
            hint = "JSON has no comments; YAML has."
        elif self.text[at] == "\ufeff":
            hint = "Save the file as UTF-8 without a byte order mark."
        elif self.text[at] in "}]":
            hint = "Remove the comma before it."
        return TextError(Fault(self.lines.place(at), message, hint))

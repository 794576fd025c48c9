"""Read the members of a request as the server does.

Each value that the server's JSON decoder refuses becomes a problem with code 10025. The other
values become `Settings`. Servers from 2.12 on refuse members that they do not know; older servers
ignore them.
"""

from __future__ import annotations

import difflib
import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, Final, cast

from twinstream.models.error_codes import INVALID_JSON
from twinstream.models.files.settings import Settings
from twinstream.models.files.shapes import SHAPES, WORDS
from twinstream.models.names.near_names import near_name
from twinstream.models.problem import Problem
from twinstream.models.times.go_time import go_time
from twinstream.models.version import Version, number

STRICT_SINCE: Version = (2, 12, 0)

ESCAPED_TIMES_SINCE: Version = (2, 14, 6)
"""The first server version that decodes escapes in times, because it is built with Go 1.27."""

_BOUNDS = {
    "int64": (-(2**63), 2**63 - 1, "a whole number of 64 bits"),
    "int32": (-(2**31), 2**31 - 1, "a whole number of 32 bits"),
    "uint64": (0, 2**64 - 1, "a whole number from 0 to 2^64-1"),
    "duration": (-(2**63), 2**63 - 1, "a whole number of nanoseconds"),
}

# Kinds of values for which a later null keeps the earlier value of a duplicate key.
# For other kinds, null removes the earlier value. Enumerations refuse null.
_KEPT_BY_NULL = {"text", "bool", *_BOUNDS, "ConsumerLimits"}

_INTEGER = re.compile(r"[+-]?\d{1,19}", re.ASCII)

# The only two non-ASCII letters that the server treats as equal to ASCII letters in keys.
_FOLDS = str.maketrans({"\u017f": "s", "\u212a": "k"})


class EscapedText(str):
    """A decoded string whose JSON text contained escapes.

    Servers do not decode escapes in values of enumerations (except `Compression`). Servers before
    `ESCAPED_TIMES_SINCE` do not decode them in times.
    """

    __slots__ = ()


class MinusZero(int):
    """The number -0, which servers refuse for unsigned integers."""


class Members(dict[str, Any]):
    """A parsed JSON object: the last value of each key.

    `pairs` contains all keys and values in order, duplicate keys included. The server reads all of
    them and merges the values of a duplicate key.
    """

    __slots__ = ("pairs",)

    def __init__(self) -> None:
        """Create an empty object."""
        super().__init__()
        self.pairs: list[tuple[str, Any]] = []

    def add(self, name: str, value: object) -> None:
        """Add a member. It replaces an earlier value of the same key, but `pairs` keeps both."""
        self[name] = value
        self.pairs.append((name, value))


def _pairs(members: Mapping[str, Any]) -> Iterable[tuple[str, Any]]:
    return members.pairs if isinstance(members, Members) else members.items()


class Reader:
    """A reader that reads requests as a server of one version does.

    `problems` has an entry for each value or member that the server refuses. `ignored` has an entry
    for each member that the server ignores.
    """

    def __init__(self, version: Version) -> None:
        """Create a reader for a server of `version`."""
        self.version = version
        self.problems: list[Problem] = []
        self.ignored: list[Problem] = []
        self._scalars: dict[str, Callable[[Any, str], Any]] = {
            "text": self._text,
            "bool": self._bool,
            "time": self._time,
        }

    def record(
        self,
        members: Mapping[str, Any],
        record: str,
        path: str = "",
        before: Settings | None = None,
    ) -> Settings:
        """Return the settings in `members`.

        Add refused values to `problems`, and ignored members to `ignored`.

        Args:
            members: The members of the JSON object.
            record: The name of the record in `SHAPES`.
            path: The prefix of the paths in the problems.
            before: The settings from an earlier occurrence of a duplicate key. They are changed in
                place and returned.
        """
        shape = SHAPES[record]
        settings = Settings(record) if before is None else before
        for name, value in _pairs(members):
            entry = shape.get(name)
            if entry is None:
                name = _folded(str(name), shape)  # YAML keys need not be text
                entry = shape.get(name)
            place = f"{path}{name}"
            if entry is None:
                self._unknown(name, value, place, list(shape))
                continue
            kind, since = entry
            if since and self.version < number(since):
                self._too_new(name, value, place, since)
                continue
            if value is None and not kind.startswith("word:"):
                if kind not in _KEPT_BY_NULL:
                    settings.pop(name, None)
                continue
            read = self._value(value, kind, place, settings.get(name))
            if read is not None:
                settings[name] = read
        return settings

    def refuse(self, path: str, value: object, message: str, hint: str = "") -> None:
        """Add the problem that the server's decoder refuses `value`."""
        self.problems.append(Problem(path, value, "R-JSON", message, hint, INVALID_JSON))

    def _refused(self, path: str, value: object, message: str, hint: str = "") -> Any:
        """Add the problem that the server's decoder refuses `value`, and return None."""
        self.refuse(path, value, message, hint)
        return None

    def _value(self, value: Any, kind: str, path: str, before: Any = None) -> Any:
        """Return `value` as the server reads it, or None if the server refuses it.

        `before` is the value from an earlier occurrence of a duplicate key, into which the server
        decodes.
        """
        if kind in _BOUNDS:
            return self._integer(value, kind, path)
        if kind in self._scalars:
            return self._scalars[kind](value, path)
        if kind.startswith("word:"):
            return self._enumeration(value, kind[5:], path)
        if kind.startswith("["):
            return self._list(value, kind[1:-1], path, before or ())
        if kind.startswith("{"):
            return self._map(value, path, before or {})
        if not isinstance(value, Mapping):
            return self._refused(path, value, f"expected an object, got {show(value)}.")
        return self.record(cast("Mapping[str, Any]", value), kind, f"{path}.", before)

    def _integer(self, value: Any, kind: str, path: str) -> Any:
        """Return an integer, or None if it is not one of the `kind`."""
        low, high, name = _BOUNDS[kind]
        if type(value) is MinusZero:
            return 0 if low else self._refused(path, value, f"-0 is not {name}.", "Write 0.")
        if type(value) is not int:
            return self._refused(
                path, value, f"expected {name}, got {show(value)}.", _number_hint(value, kind)
            )
        if not low <= value <= high:
            return self._refused(path, value, f"{show(value)} is not {name}.")
        return value

    def _text(self, value: Any, path: str) -> Any:
        if not isinstance(value, str):
            return self._refused(path, value, f"expected text, got {show(value)}.", _quotes(value))
        return value if value.isascii() else _whole(value)

    def _bool(self, value: Any, path: str) -> Any:
        if not isinstance(value, bool):
            return self._refused(path, value, f"expected true or false, got {show(value)}.")
        return value

    def _time(self, value: Any, path: str) -> Any:
        is_read = not isinstance(value, EscapedText) or self.version >= ESCAPED_TIMES_SINCE
        if is_read and isinstance(value, str) and go_time(value) is not None:
            return value
        hint = "Write it as 2026-01-31T08:00:00Z."
        return self._refused(path, value, f"expected a time, got {show(value)}.", hint)

    def _enumeration(self, value: Any, enumeration: str, path: str) -> Any:
        """Return a word of an enumeration as the server reads it, or None if the server refuses it.

        Only `DiscardPolicy` ignores case. The words in `_EXTRA_WORDS` mean that the setting is
        absent.
        """
        words = WORDS[enumeration]
        # The server compares the raw text of the value, with escapes, except for `Compression`.
        has_raw_escapes = isinstance(value, EscapedText) and enumeration != "Compression"
        if isinstance(value, str) and not has_raw_escapes:
            word = value.lower() if enumeration == "DiscardPolicy" else value
            since = words.get(word)
            if since is not None and self.version >= number(since):
                return str(word)
            if since is not None:
                hint = f"Use another word or a server from {_short(since)} on."
                return self._refused(
                    path, value, f"{show(value)} needs server {_short(since)}.", hint
                )
            if word in _EXTRA_WORDS.get(enumeration, ()):
                return ""
        close = difflib.get_close_matches(str(value).lower(), words, n=1)
        hint = f"Did you mean {close[0]!r}?" if close else ""
        listed = ", ".join(words)
        return self._refused(path, value, f"expected one of {listed}, got {show(value)}.", hint)

    def _list(self, value: Any, kind: str, path: str, before: Sequence[Any]) -> Any:
        """Return the items of a list as the server reads them. Items that it refuses are omitted.

        `before` is the list from an earlier occurrence of a duplicate key, or empty.
        """
        if not isinstance(value, (list, tuple)):
            return self._refused(
                path, value, f"expected a list, got {show(value)}.", _brackets(value)
            )
        items: list[Any] = []
        for index, item in enumerate(cast("list[Any]", value)):
            # If the key is a duplicate, the server decodes this list over the earlier one. A member
            # that an item lacks keeps its value from the earlier item at the same position.
            old = before[index] if index < len(before) else None
            if item is None:
                items.append(_null_item(kind, old))
                continue
            read = self._value(item, kind, f"{path}[{index}]", old)
            if read is not None:
                items.append(read)
        return items

    def _map(self, value: Any, path: str, before: Mapping[str, str]) -> Any:
        """Return a map of texts as the server reads it: merged into `before`, with "" for null."""
        if not isinstance(value, Mapping):
            return self._refused(path, value, f"expected an object, got {show(value)}.")
        texts = dict(before)
        for key, item in _pairs(cast("Mapping[str, Any]", value)):
            read = "" if item is None else self._text(item, f"{path}.{key}")
            if read is not None:
                texts[_whole(str(key))] = read
        return texts

    def _unknown(self, name: str, value: Any, path: str, known: list[str]) -> None:
        near = near_name(name, known)
        hint = f"Did you mean {near!r}?" if near else "Remove it."
        self._not_read(
            Problem(path, value, "R-UNKNOWN", "there is no such setting.", hint, INVALID_JSON)
        )

    def _too_new(self, name: str, value: Any, path: str, since: str) -> None:
        self._not_read(
            Problem(
                path,
                value,
                "R-TOO-NEW",
                f"{name} needs server {_short(since)}.",
                "Remove it or use a newer server.",
                INVALID_JSON,
            )
        )

    def _not_read(self, problem: Problem) -> None:
        (self.problems if self.version >= STRICT_SINCE else self.ignored).append(problem)


# Additional values of enumerations, which the server reads as "not set".
_EXTRA_WORDS = {
    "PersistMode": ("",),
    "ConsumerCreateAction": ("",),
    "DeliverPolicy": ("undefined",),
}


_LONG_BITS: Final = 256


def show(value: object) -> str:
    """Return a JSON value as text for a message, at most 60 characters long."""
    if value is None or isinstance(value, bool):
        return "null" if value is None else str(value).lower()
    if isinstance(value, Mapping):
        return "an object"
    if isinstance(value, str):
        text = repr(str(value))
    elif isinstance(value, (list, tuple)):
        return "a list"
    elif isinstance(value, int) and value.bit_length() > _LONG_BITS:
        # Python refuses to convert a number of thousands of digits.
        return "a very large number"
    else:
        text = repr(value)
    return text if len(text) <= 60 else f"{text[:57]}..."


def _null_item(kind: str, before: Any) -> Any:
    """Return the item that the server reads for null in a list.

    If the key of the list is a duplicate, `before` is the item at the same position of the earlier
    list, or None. The server keeps an earlier item, except in the list of sources. In all other
    cases it reads null as a zero value.
    """
    if before is not None and kind != "StreamSource":
        return before
    return "" if kind == "text" else 0 if kind == "duration" else Settings(kind)


def _whole(text: str) -> str:
    """Return `text` with lone surrogates replaced by U+FFFD, as the server reads them."""
    try:
        text.encode()
    except UnicodeEncodeError:
        return text.encode("utf-16", "surrogatepass").decode("utf-16", "replace")
    return text


def _folded(name: str, shape: Mapping[str, object]) -> str:
    folded = name.translate(_FOLDS).lower()
    return folded if folded in shape else name


def _short(version: str) -> str:
    return version.removesuffix(".0")


def _number_hint(value: object, kind: str) -> str:
    """Return a hint with the number to write instead of a refused value, or ""."""
    if kind == "duration" and isinstance(value, str):
        from twinstream.models.units import in_hours, parse_duration

        hours = in_hours(value)
        ns = parse_duration(value)
        if ns is not None:
            return f"Write {ns}." if hours == value else f"Write {ns}, which is {hours}."
    if isinstance(value, str) and _INTEGER.fullmatch(value):
        return f"Write {int(value)} without quotes."
    if isinstance(value, float) and value.is_integer() and abs(value) < 2**63:
        return f"Write {int(value)}."
    return ""


def _quotes(value: object) -> str:
    # The hint does not repeat the value, because the parser has changed it: 1.10 became 1.1, and
    # 010 became 8.
    return "Put it into quotes." if isinstance(value, (bool, int, float)) else ""


def _brackets(value: object) -> str:
    return "Put it into [ ]." if isinstance(value, (str, int)) else ""

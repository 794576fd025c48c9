"""Parse the options that Spark passes as a case-insensitive map of text.

The map records the name of every option that the program looks up. When all options were looked up,
any other option is an error, because it is a typo or an option of another source.
"""

from __future__ import annotations

import difflib
import re
from collections.abc import Mapping
from typing import Final, TypeVar

from twinstream.core.wire.subjects import BLANKS
from twinstream.spark.errors import OptionError

__all__ = ["OptionsMap", "duration_seconds"]

_Word = TypeVar("_Word", bound=str)

# Options that Spark itself adds for tables created by SQL: the reserved properties of its
# catalogs. Spark also adds a copy of every option with the prefix `_COPY`.
_TABLE_PROPERTIES: Final = frozenset(
    {"collation", "comment", "external", "is_managed_location", "location", "owner", "path"}
    | {"provider", "serialization.format"}
)
_COPY: Final = "option."

# Options that Spark reads itself and also passes to the source.
_SPARK_OWN: Final = frozenset({"checkpointlocation"})

_DURATION: Final = re.compile(r"(\d{1,9})\s*(ms|s|m|h|d)", re.ASCII)
_UNITS: Final = {"ms": 0.001, "s": 1.0, "m": 60.0, "h": 3600.0, "d": 86_400.0}


class OptionsMap:
    """The options of a read or write, with methods that look up and validate one option.

    `finish` raises an error for options that were not looked up.
    """

    def __init__(self, options: Mapping[str, str]) -> None:
        self._values = {name.lower(): value for name, value in options.items()}
        self._given = {name.lower(): name for name in options}
        self._known: dict[str, str] = {}

    def text(self, *names: str) -> str | None:
        """Return the value of an option without surrounding blanks, or `None` if it is not given.

        The first of `names` is the option's name, the others are aliases. Raises `OptionError` if
        the option is given under two names or is empty.
        """
        found: str | None = None
        for name in names:
            self._known[name.lower()] = name
            value = self._values.get(name.lower())
            if value is None:
                continue
            if found is not None:
                raise OptionError(name, f"means the same as {names[0]!r}; give one of them")
            found = value.strip(BLANKS)
            if not found:
                raise OptionError(name, "may not be empty")
        return found

    def integer(self, name: str, default: int, *, least: int = 0) -> int:
        """Return the value of an option, a whole number from `least` up.

        Return `default` if the option is not given. Raises `OptionError` for any other text.
        """
        value = self.maybe_integer(name, least=least)
        return default if value is None else value

    def maybe_integer(self, *names: str, least: int = 1) -> int | None:
        """Return the value of an option, a whole number from `least` up.

        Return `None` if the option is not given. Raises `OptionError` for any other text.
        """
        text = self.text(*names)
        if text is None:
            return None
        try:
            number = int(text)
        except ValueError:
            number = least - 1
        if number < least:
            name = self.given_name(*names)
            raise OptionError(name, f"must be a whole number from {least} up, got {text!r}")
        return number

    def duration(self, name: str, default: float) -> float:
        """Return the value of an option, a duration such as `500ms`, in seconds.

        Return `default` if the option is not given. Raises `OptionError` for any other text.
        """
        text = self.text(name)
        if text is None:
            return default
        found = duration_seconds(text)
        if found is None:
            raise OptionError(
                name, f"must be a duration such as 500ms, 30s, 15m or 2h, got {text!r}"
            )
        return found

    def boolean(self, name: str, default: bool) -> bool:
        """Return whether an option is `true`, or `default` if the option is not given.

        Raises `OptionError` if the value is neither `true` nor `false`.
        """
        text = self.text(name)
        if text is None:
            return default
        if text.lower() not in {"true", "false"}:
            raise OptionError(name, f"must be true or false, got {text!r}")
        return text.lower() == "true"

    def word(self, name: str, choices: tuple[_Word, ...]) -> _Word:
        """Return the item of `choices` that is the value of an option, ignoring case.

        If the option is not given, return the first item. Raises `OptionError` for any other text.
        """
        text = self.text(name)
        if text is None:
            return choices[0]
        for choice in choices:
            if choice.lower() == text.lower():
                return choice
        raise OptionError(name, f"must be {_either(choices)}, got {text!r}")

    def names(self, *options: str) -> tuple[str, ...]:
        """Return the names in an option with a comma-separated list.

        Return an empty tuple if the option is not given. Raises `OptionError` if a name is empty or
        appears twice.
        """
        text = self.text(*options)
        if text is None:
            return ()
        option = self.given_name(*options)
        found = tuple(part.strip(BLANKS) for part in text.split(","))
        if "" in found:
            raise OptionError(option, f"has an empty name in {text!r}")
        twice = [name for name in found if found.count(name) > 1]
        if twice:
            raise OptionError(option, f"names {twice[0]!r} twice")
        return found

    def given_name(self, *names: str) -> str:
        """Return the name or alias under which an option was given, or else the first name."""
        return next((name for name in names if name.lower() in self._values), names[0])

    def _is_of_table(self, key: str) -> bool:
        if "provider" not in self._values:
            return False
        return key in _TABLE_PROPERTIES or key.removeprefix(_COPY) in self._known

    def finish(self) -> None:
        """Raise `OptionError` for an option that was not looked up.

        Options that Spark itself adds or reads are ignored.
        """
        for key in self._values:
            if key in self._known or key in _SPARK_OWN or self._is_of_table(key):
                continue
            near = difflib.get_close_matches(key, self._known, n=1)
            hint = f"; did you mean {self._known[near[0]]!r}?" if near else ""
            raise OptionError(self._given[key], f"is not known{hint}")


def duration_seconds(text: str) -> float | None:
    """Return the seconds of a duration such as `500ms` or `7d`, or `None` for any other text."""
    found = _DURATION.fullmatch(text)
    return None if found is None else int(found[1]) * _UNITS[found[2]]


def _either(words: tuple[str, ...]) -> str:
    return ", ".join(words[:-1]) + f" or {words[-1]}"

"""A table of a TOML file whose keys are read one by one; an unread key is an error at the end."""

from __future__ import annotations

import difflib
import re
from collections.abc import Mapping
from typing import Final, TypeVar, cast

from twinstream.core.wire.subjects import BLANKS
from twinstream.spark.errors import ConfigError

__all__ = ["TomlTable"]

_Word = TypeVar("_Word", bound=str)

_DURATION: Final = re.compile(r"(\d{1,9})\s*(ms|s|m|h)", re.ASCII)
_UNITS: Final = {"ms": 0.001, "s": 1.0, "m": 60.0, "h": 3600.0}


class TomlTable:
    """Reads the keys of one table.

    ``where`` names the file and the table in errors, as in ``orders.toml: source ORDERS``.
    """

    def __init__(self, where: str, values: Mapping[str, object]) -> None:
        self._where: Final = where
        self._values: Final = dict(values)
        self._known: Final[set[str]] = set()

    def fail(self, key: str, reason: str) -> ConfigError:
        """Return the error for a key, to be raised."""
        return ConfigError(f"{self._where}: {key}", reason)

    def only(self, places: Mapping[str, str], *keys: str) -> None:
        """Refuse other keys, so that a misspelled key is reported as such and not as missing.

        ``places`` maps keys of other tables to the places where they belong.
        """
        self.refuse(places, *(places.keys() - keys))
        for key in self._values:
            if key not in keys:
                raise self.fail(key, f"is not known{near(key, keys)}")

    def refuse(self, places: Mapping[str, str], *keys: str) -> None:
        """Refuse keys of other tables, with the place where they belong in the error."""
        for key in self._values:
            if key in keys:
                raise self.fail(key, f"is not known here; it belongs {places[key]}")

    def misspelt(self, key: str) -> None:
        """Refuse a key that is similar to this missing one."""
        for each in self._values:
            if hint := near(each, (key,)):
                raise self.fail(each, f"is not known{hint}")

    def has(self, key: str) -> bool:
        """Return whether the key is given."""
        return key in self._values

    def value(self, key: str) -> object:
        """Read any value, or return ``None``."""
        self._known.add(key)
        return self._values.get(key)

    def text(self, key: str, default: str = "") -> str:
        """Read a text that is not empty."""
        value = self.value(key)
        if value is None:
            return default
        if not isinstance(value, str) or not value.strip(BLANKS):
            raise self.fail(key, f"must be a text that is not empty, got {value!r}")
        return value.strip(BLANKS)

    def number(self, key: str, default: int | None = None, *, least: int = 1) -> int | None:
        """Read a whole number from ``least`` up."""
        value = self.value(key)
        if value is None:
            return default
        if isinstance(value, bool) or not isinstance(value, int) or value < least:
            raise self.fail(key, f"must be a whole number from {least} up, got {value!r}")
        return value

    def seconds(self, key: str, default: float) -> float:
        """Read a duration: ``500ms``, ``30s``, ``15m`` or ``2h``."""
        value = self.value(key)
        return default if value is None else self.duration(key, value)

    def duration(self, key: str, value: object) -> float:
        """Return the seconds of a duration in text."""
        found = _DURATION.fullmatch(value.strip()) if isinstance(value, str) else None
        if found is None or not int(found[1]):
            raise self.fail(key, f"must be a duration such as 500ms, 30s, 15m or 2h, got {value!r}")
        return int(found[1]) * _UNITS[found[2]]

    def word(self, key: str, choices: tuple[_Word, ...]) -> _Word:
        """Read one of the words; the first is the default."""
        text: str = self.text(key, choices[0])
        for choice in choices:
            if choice == text:
                return choice
        raise self.fail(
            key, f"must be one of {', '.join(choices)}, got {text!r}{near(text, choices)}"
        )

    def texts(self, key: str) -> tuple[str, ...]:
        """Read a list of texts, or one text."""
        value = self.value(key)
        found = [value] if isinstance(value, str) else value
        if found is None:
            return ()
        items = cast(list[object], found) if isinstance(found, list) else [None]
        if not all(isinstance(each, str) and each.strip(BLANKS) for each in items):
            raise self.fail(key, f"must be a list of texts, got {value!r}")
        return tuple(str(each) for each in items)

    def table(self, key: str) -> TomlTable:
        """Read a table below this one; empty if it is not given."""
        value = self.value(key)
        if value is None:
            value = {}
        if not isinstance(value, dict):
            raise self.fail(key, f"must be a table ([{key}]), got {value!r}")
        return TomlTable(f"{self._where}: [{key}]", cast(dict[str, object], value))

    def tables(self, key: str) -> list[Mapping[str, object]]:
        """Read a list of tables."""
        value = self.value(key)
        items = cast(list[object], value) if isinstance(value, list) else [value]
        if not items or not all(isinstance(each, dict) for each in items):
            raise self.fail(key, f"is required, at least once: write it as [[{key}]]")
        return cast(list[Mapping[str, object]], items)

    def rest(self) -> dict[str, object]:
        """Read all keys that were not read yet."""
        left = {key: value for key, value in self._values.items() if key not in self._known}
        self._known.update(left)
        return left

    def finish(self) -> None:
        """Raise `ConfigError` for a key that was not read."""
        for key in self._values:
            if key not in self._known:
                raise self.fail(key, f"is not known{near(key, self._known)}")


def near(word: str, known: set[str] | tuple[str, ...]) -> str:
    """Return a hint at the most similar known word, or an empty text."""
    found = difflib.get_close_matches(word, sorted(known), n=1)
    return f"; did you mean {found[0]!r}?" if found else ""

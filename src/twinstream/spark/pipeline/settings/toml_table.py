"""Read and validate the keys of a TOML table one by one. Keys that are never read are errors."""

from __future__ import annotations

import difflib
import re
from collections.abc import Mapping
from typing import Final, TypeVar, cast

from twinstream.core.wire.subjects import BLANKS
from twinstream.models.units import parse_size
from twinstream.spark.errors import ConfigError

__all__ = ["TomlTable", "near"]

_Word = TypeVar("_Word", bound=str)

_DURATION: Final = re.compile(r"(\d{1,9})\s*(ms|s|m|h)", re.ASCII)
_UNITS: Final = {"ms": 0.001, "s": 1.0, "m": 60.0, "h": 3600.0}


class TomlTable:
    """One table of a TOML file, with methods that read and validate a key.

    `where` names the file and the table in errors, as in `orders.toml: source ORDERS`.
    """

    def __init__(self, where: str, values: Mapping[str, object]) -> None:
        self._where: Final = where
        self._values: Final = dict(values)
        self._known: Final[set[str]] = set()

    def fail(self, key: str, reason: str) -> ConfigError:
        """Return the error for a key, which the caller raises."""
        return ConfigError(f"{self._where}: {key}", reason)

    def only(self, places: Mapping[str, str], *keys: str) -> None:
        """Raise `ConfigError` if the table has any other key than `keys`.

        Call this before keys are read, so that a misspelled key is not reported as missing.
        `places` maps keys to texts that say where in the file they belong.
        """
        self.refuse(places, *(places.keys() - keys))
        for key in self._values:
            if key not in keys:
                raise self.fail(key, f"is not known{near(key, keys)}")

    def refuse(self, places: Mapping[str, str], *keys: str) -> None:
        """Raise `ConfigError` if the table has one of `keys`.

        The error says where in the file the key belongs, with the text from `places`.
        """
        for key in self._values:
            if key in keys:
                raise self.fail(key, f"is not known here; it belongs {places[key]}")

    def misspelt(self, key: str) -> None:
        """Raise `ConfigError` if the table has a key that is similar to the missing `key`."""
        for each in self._values:
            if hint := near(each, (key,)):
                raise self.fail(each, f"is not known{hint}")

    @property
    def keys(self) -> tuple[str, ...]:
        """The keys of the table."""
        return tuple(self._values)

    def has(self, key: str) -> bool:
        """Return whether the table has the key."""
        return key in self._values

    def value(self, key: str) -> object:
        """Return the value of a key, or `None` if the table does not have the key."""
        self._known.add(key)
        return self._values.get(key)

    def text(self, key: str, default: str = "") -> str:
        """Return a text without blanks around it, or `default` if the key is missing.

        Raises `ConfigError` for an empty text or another type.
        """
        value = self.value(key)
        if value is None:
            return default
        if not isinstance(value, str) or not value.strip(BLANKS):
            raise self.fail(key, f"must be a text that is not empty, got {value!r}")
        return value.strip(BLANKS)

    def number(self, key: str, default: int | None = None, *, least: int = 1) -> int | None:
        """Return a whole number, or `default` if the key is missing.

        Raises `ConfigError` for a number below `least` or another type.
        """
        value = self.value(key)
        if value is None:
            return default
        if isinstance(value, bool) or not isinstance(value, int) or value < least:
            raise self.fail(key, f"must be a whole number from {least} up, got {value!r}")
        return value

    def seconds(self, key: str, default: float) -> float:
        """Return a duration such as `500ms`, `30s`, `15m` or `2h` in seconds.

        If the key is missing, return `default`. Raises `ConfigError` for another text.
        """
        value = self.value(key)
        return default if value is None else self.duration(key, value)

    def duration(self, key: str, value: object) -> float:
        """Return the seconds of a duration. Raises `ConfigError` if `value` is no duration."""
        found = _DURATION.fullmatch(value.strip()) if isinstance(value, str) else None
        if found is None or not int(found[1]):
            raise self.fail(key, f"must be a duration such as 500ms, 30s, 15m or 2h, got {value!r}")
        return int(found[1]) * _UNITS[found[2]]

    def size(self, key: str, default: int, limits: tuple[int, int]) -> int:
        """Return a size such as `64 MiB` in bytes, or `default` if the key is missing.

        Raises `ConfigError` for another text, and for a size outside the limits.
        """
        text = self.text(key)
        if not text:
            return default
        found = parse_size(text.replace(" ", ""))
        if found is None:
            raise self.fail(key, f"must be a size such as 64 MiB, got {text!r}")
        if not limits[0] <= found <= limits[1]:
            least, most = (each // 1024**2 for each in limits)
            raise self.fail(key, f"must be from {least} MiB to {most} MiB, got {text!r}")
        return found

    def word(self, key: str, choices: tuple[_Word, ...]) -> _Word:
        """Return the value of a key, which must be one of `choices`.

        If the key is missing, return the first choice. Raises `ConfigError` for any other value.
        """
        text: str = self.text(key, choices[0])
        for choice in choices:
            if choice == text:
                return choice
        raise self.fail(
            key, f"must be one of {', '.join(choices)}, got {text!r}{near(text, choices)}"
        )

    def texts(self, key: str) -> tuple[str, ...]:
        """Return a list of texts, or one text, as a tuple. It is empty if the key is missing.

        Raises `ConfigError` for an empty list, an empty text or another type.
        """
        value = self.value(key)
        found = [value] if isinstance(value, str) else value
        if found is None:
            return ()
        items = cast(list[object], found) if isinstance(found, list) else [None]
        if not items or not all(isinstance(each, str) and each.strip(BLANKS) for each in items):
            raise self.fail(key, f"must be a list of texts, got {value!r}")
        return tuple(str(each) for each in items)

    def table(self, key: str) -> TomlTable:
        """Return a table inside this table. It is empty if the key is missing.

        Raises `ConfigError` for a value that is no table.
        """
        value = self.value(key)
        if value is None:
            value = {}
        if not isinstance(value, dict):
            raise self.fail(key, f"must be a table ([{key}]), got {value!r}")
        return TomlTable(f"{self._where}: [{key}]", cast(dict[str, object], value))

    def tables(self, key: str) -> list[Mapping[str, object]]:
        """Return the tables of an array of tables.

        Raises `ConfigError` if the key is missing, the array is empty or the value is no array of
        tables.
        """
        value = self.value(key)
        items = cast(list[object], value) if isinstance(value, list) else [value]
        if not items or not all(isinstance(each, dict) for each in items):
            raise self.fail(key, f"is required, at least once: write it as [[{key}]]")
        return cast(list[Mapping[str, object]], items)

    def rest(self) -> dict[str, object]:
        """Return all keys that were not read yet, with their values, and mark them as read."""
        left = {key: value for key, value in self._values.items() if key not in self._known}
        self._known.update(left)
        return left

    def finish(self) -> None:
        """Raise `ConfigError` for a key that was not read."""
        for key in self._values:
            if key not in self._known:
                raise self.fail(key, f"is not known{near(key, self._known)}")


def near(word: str, known: set[str] | tuple[str, ...]) -> str:
    """Return a text for an error that suggests the most similar known word.

    Return an empty text if no known word is similar.
    """
    found = difflib.get_close_matches(word, sorted(known), n=1)
    return f"; did you mean {found[0]!r}?" if found else ""

"""The entries of the table of operations, and the substitution of their arguments."""

from __future__ import annotations

import re
from typing import Final

from attrs import field, frozen

from twinstream.core.wire.subjects import check_filter
from twinstream.errors import BadArgument

__all__ = ["Operation", "Pattern"]

_OPTIONAL: Final = re.compile(r"\[([^\[\]]*)\]")
_NAMES: Final = frozenset({"account", "bucket", "consumer", "group", "into", "member", "stream"})


@frozen
class Operation:
    """An operation of a client, and the subjects that it publishes and subscribes to.

    The subjects contain the placeholders of `permission_table`, such as `P` and `INBOX`.
    """

    name: str
    publishes: tuple[str, ...]
    subscribes: tuple[str, ...]


def _words(text: str | tuple[str, ...]) -> tuple[str, ...]:
    return tuple(text.split()) if isinstance(text, str) else text


@frozen
class Pattern:
    """An entry of the table: an operation, its arguments, and its subjects.

    `takes` has the names of the arguments: in brackets if the argument is optional, and with `*` if
    it may be repeated. The subjects contain names of arguments in braces.
    """

    name: str
    takes: tuple[str, ...] = field(converter=_words)
    publishes: tuple[str, ...] = field(converter=_words)
    subscribes: tuple[str, ...] = field(default=("INBOX",), converter=_words)

    @property
    def usage(self) -> str:
        """The operation with its arguments for usage texts, such as `consume STREAM CONSUMER`."""
        shown = (word.replace("*", "...").upper() for word in self.takes)
        return " ".join([self.name, *shown])

    def of(self, *arguments: str) -> Operation:
        """Return the operation with these arguments; raises `BadArgument` for invalid ones."""
        most = len(self.takes)
        if self.takes and self.takes[-1].endswith("*"):
            most = max(most, len(arguments))
        least = sum(1 for word in self.takes if not word.startswith("["))
        if not least <= len(arguments) <= most:
            raise BadArgument(f"wrong number of arguments; usage: {self.usage}")
        each = self._named(arguments)
        return Operation(self.name, _all(self.publishes, each), _all(self.subscribes, each))

    def _named(self, arguments: tuple[str, ...]) -> list[dict[str, str]]:
        """Return the arguments by name.

        The result has one mapping for each value of a repeated argument, otherwise a single
        mapping.
        """
        names = [word.strip("[]*") for word in self.takes]
        if self.takes and self.takes[-1].endswith("*"):
            return [{names[0]: _checked(names[0], value)} for value in arguments]
        pairs = zip(names, arguments, strict=False)
        return [{name: _checked(name, value) for name, value in pairs}]


def _checked(name: str, value: str) -> str:
    """Return the argument called `name`; raises `BadArgument` if its value is invalid.

    The value `*` stands for any stream, consumer or other name.
    """
    check_filter(value)
    if name in _NAMES and ("." in value or value == ">"):
        raise BadArgument(f"{value!r} is not the name of a {name}; use * for any")
    return value


def _all(patterns: tuple[str, ...], each: list[dict[str, str]]) -> tuple[str, ...]:
    made = [_filled(pattern, given) for given in each for pattern in patterns]
    return tuple(dict.fromkeys(one for one in made if one))


def _filled(pattern: str, given: dict[str, str]) -> str:
    def part(found: re.Match[str]) -> str:
        text = found[1]
        return text if all(name in given for name in re.findall(r"\{(\w+)\}", text)) else ""

    return _OPTIONAL.sub(part, pattern).format(**given)

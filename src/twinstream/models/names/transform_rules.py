"""Subject transforms: parsing, and whether the server accepts source and destination.

A destination token is plain text, an index such as `$1`, or a function such as `{{wildcard(1)}}`.
The server checks the transforms of streams and origins more strictly than those of `republish`.
"""

from __future__ import annotations

import re
from collections.abc import Callable

from attrs import frozen

from twinstream.models.numbers import whole_number
from twinstream.models.version import NEWEST, Version

_INTEGER = re.compile(r"[+-]?\d+", re.ASCII)
_COMMA = re.compile(r",[ \t\r\n\f]*")
_INT32_MAX = 2**31 - 1
_BLANKS = frozenset(" \t\r\n\f")

_ONE_INDEX = "wildcard"
_INDEX_AND_NUMBER = (
    "splitfromleft",
    "splitfromright",
    "slicefromleft",
    "slicefromright",
    "left",
    "right",
)

# The first server version on which `partition` and `random` need no wildcard in the source.
_FREE_SINCE: Version = (2, 12, 0)
# The first server versions that refuse a number of more than 32 bits: the first constant is for the
# second number of a function, the other is for the number of partitions.
_BOUND_SINCE: Version = (2, 11, 8)
_PARTITIONS_BOUND_SINCE: Version = (2, 12, 0)
# The first server version that accepts `left` and `right` in transforms of streams and origins.
_LEFT_RIGHT_SINCE: Version = (2, 15, 0)


@frozen
class TokenFunction:
    """A destination token that is a function or an index."""

    name: str
    indexes: tuple[int, ...] = ()
    """The wildcards of the source that the function uses, counted from 1."""
    number: int = 0
    separator: str = ""


def token_function(target: str, version: Version = NEWEST) -> TokenFunction | None:
    """Return the function of a valid destination token; None if the token is plain text."""
    index = _short_index(target)
    if index is not None:
        return TokenFunction(_ONE_INDEX, (index,))
    call = _call(target, version) if _is_call(target) else None
    if call is None:
        return None
    if call.name == "split":
        return TokenFunction(call.name, (call.number(0),), separator=call.arguments[1])
    numbers = [call.number(place) for place in range(len(call.arguments))]
    if call.name in ("partition", "random"):
        return TokenFunction(call.name, tuple(numbers[1:]), numbers[0])
    return TokenFunction(call.name, (numbers[0],), numbers[-1])


def target_pattern(destination: str, version: Version = NEWEST) -> str:
    """Return a filter that matches all subjects that a transform can produce."""
    tokens: list[str] = []
    for token in destination.split("."):
        function = token_function(token, version)
        if function is not None and function.name.startswith(("split", "slice")):
            return ".".join([*tokens, ">"])  # the function may produce several tokens
        tokens.append(token if function is None else "*")
    return ".".join(tokens)


def _short_index(target: str) -> int | None:
    """Return the number of a token such as `$1`; None for other tokens.

    A token with a number of more than 64 bits is plain text, so the result is None.
    """
    return _integer(target[1:]) if target.startswith("$") else None


def _integer(text: str) -> int | None:
    if not _INTEGER.fullmatch(text):
        return None
    number = whole_number(text)
    return number if -(2**63) <= number < 2**63 else None


def _is_call(target: str) -> bool:
    return len(target) > 4 and target.startswith("{{") and target.endswith("}}")


@frozen
class _Call:
    """A function name and its arguments, split at commas as the server does."""

    name: str
    arguments: list[str]
    version: Version

    def integer(self, place: int) -> int | None:
        """Return the argument at `place` as an integer; None if it is not a 64-bit integer."""
        return _integer(self.arguments[place].strip(" "))

    def number(self, place: int) -> int:
        """Return the argument at `place` as an integer; 0 if it is not a 64-bit integer."""
        return self.integer(place) or 0

    def are_integers(self, *places: int) -> bool:
        """Whether the arguments at `places`, by default all arguments, are 64-bit integers."""
        chosen = places or range(len(self.arguments))
        return all(self.integer(place) is not None for place in chosen)


def _call(target: str, version: Version) -> _Call | None:
    """Return the function call in a token, or None if the token contains none.

    The server searches the token for each function, in the order of `_PATTERNS`. The arguments
    extend to the last closing bracket. Text outside of the call has no effect.
    """
    for name, pattern in _PATTERNS.items():
        match = pattern.search(target)
        if match and (name != "random" or version >= _FREE_SINCE):
            return _Call(name, _COMMA.split(match[1]), version)
    return None


def transform_fault(
    source: str, destination: str, version: Version, *, strict: bool = True
) -> str | None:
    """Return why the server refuses a transform, or None if it accepts the transform.

    `strict` applies the checks for transforms of streams and origins. The server checks `republish`
    without them.
    """
    if not destination:
        return None
    source = source or ">"
    sources, targets = source.split("."), destination.split(".")
    fault = _tokens_fault(sources, targets)
    if fault:
        return fault
    for target in targets:
        fault = _target_fault(target, sources, version, strict)
        if fault:
            return fault
    return None


def _tokens_fault(sources: list[str], targets: list[str]) -> str | None:
    """Return what is wrong with the wildcards or tokens of a transform, or None."""
    for what, tokens in (("source", sources), ("destination", targets)):
        if "" in tokens:
            return f"the {what} has an empty token"
        if ">" in tokens[:-1]:
            return f"the {what} has > before its end"
    if "*" in targets:
        return "the destination has the wildcard *"
    if (sources[-1] == ">") != (targets[-1] == ">"):
        return "source and destination must both end in > or neither"
    return None


def _target_fault(target: str, sources: list[str], version: Version, strict: bool) -> str | None:
    """Return why the server refuses a token of a transform's destination, or None."""
    wild = _Wild(sources.count("*"), ">" in sources and version >= _FREE_SINCE)
    index = _short_index(target)
    if index is not None:
        return wild.fault([index], target)
    if _is_call(target):
        return _function_fault(target, wild, version, strict)
    if strict and not _BLANKS.isdisjoint(target):
        return f"{target!r} has a blank"
    return None


@frozen
class _Wild:
    """The wildcards in the source of a transform."""

    stars: int
    has_rest: bool
    """Whether the source ends in `>`. Always False before 2.12, because the server ignores `>`."""

    def fault(self, indexes: list[int], target: str) -> str | None:
        """Return why the source lacks the wildcards `indexes` that `target` uses, or None.

        The server accepts indexes below 1.
        """
        beyond = any(index > self.stars for index in indexes)
        if not self.stars and (beyond or not self.has_rest):
            return f"{target} needs a * in the source"
        return (
            f"{target} names more wildcards than the {self.stars} in the source" if beyond else None
        )


def _function_fault(target: str, wild: _Wild, version: Version, strict: bool) -> str | None:
    """Return why the server refuses a function in a destination, or None."""
    call = _call(target, version)
    if call is None:
        return f"{target} is not a function known to the server"
    if strict and call.name in ("left", "right") and version < _LEFT_RIGHT_SINCE:
        return f"{call.name} needs server 2.15"
    fault = _FUNCTIONS[call.name](call)
    if fault:
        return f"{target} {fault}"
    function = token_function(target, version)
    indexes = list(function.indexes) if function else []
    if call.name in ("partition", "random"):
        return _free_fault(call.name, indexes, wild, target, version)
    return wild.fault(indexes, target)


def _free_fault(
    name: str, indexes: list[int], wild: _Wild, target: str, version: Version
) -> str | None:
    """Return what is wrong with the indexes of `partition` and `random`, or None.

    Since server 2.12, these functions need no wildcard.
    """
    if version < _FREE_SINCE:
        needs = f"{target} takes the number of partitions, then numbers of wildcards"
        return wild.fault(indexes, target) if indexes else needs
    # If the source has no wildcard, the server does not check the indexes.
    return wild.fault(indexes, target) if wild.stars or wild.has_rest else None


def _wildcard(call: _Call) -> str | None:
    one = len(call.arguments) == 1 and call.are_integers()
    return None if one else "takes the number of a wildcard"


def _partition(call: _Call) -> str | None:
    if not call.are_integers():
        return "takes the number of partitions, then numbers of wildcards"
    bound = call.version >= _PARTITIONS_BOUND_SINCE
    return "has too many partitions" if bound and call.number(0) > _INT32_MAX else None


def _random(call: _Call) -> str | None:
    if len(call.arguments) != 1 or not call.are_integers():
        return "takes one number"
    return "has too large a number" if call.number(0) > _INT32_MAX else None


def _index_and_number(call: _Call) -> str | None:
    if len(call.arguments) != 2 or not call.are_integers():
        return "takes the number of a wildcard and a second number"
    if call.version >= _BOUND_SINCE and not -(2**31) <= call.number(1) <= _INT32_MAX:
        return "has a second number beyond 32 bits"
    return None


def _split(call: _Call) -> str | None:
    if len(call.arguments) != 2 or not call.are_integers(0):
        return "takes the number of a wildcard and a separator"
    return "has a blank in its separator" if " " in call.arguments[1] else None


_FUNCTIONS: dict[str, Callable[[_Call], str | None]] = {
    _ONE_INDEX: _wildcard,
    "partition": _partition,
    "random": _random,
    "split": _split,
    **dict.fromkeys(_INDEX_AND_NUMBER, _index_and_number),
}

# The spellings of each function name, in the order in which the server tries them. The first letter
# of each word of a name may be upper or lower case.
_SPELLINGS = {
    "wildcard": "[wW]ildcard",
    "partition": "[pP]artition",
    "splitfromleft": "[sS]plit[fF]rom[lL]eft",
    "splitfromright": "[sS]plit[fF]rom[rR]ight",
    "slicefromleft": "[sS]lice[fF]rom[lL]eft",
    "slicefromright": "[sS]lice[fF]rom[rR]ight",
    "right": "[rR]ight",
    "left": "[lL]eft",
    "split": "[sS]plit",
    "random": "[rR]andom",
}
_BLANK = r"[ \t\r\n\f]*"
_PATTERNS = {
    name: re.compile(rf"\{{\{{{_BLANK}{spelling}{_BLANK}\((.*)\){_BLANK}\}}\}}")
    for name, spelling in _SPELLINGS.items()
}

"""Subject transforms, and whether the server can build one from source and destination.

A destination token is plain text, ``$1``, or a function such as ``{{wildcard(1)}}``. The server
checks more where a stream stores the new subject than where it publishes again.
"""

from __future__ import annotations

import re
from collections.abc import Callable

from attrs import frozen

from js_models._digits import whole_number
from js_models.version import Version

_FUNCTION = re.compile(r"\{\{\s*(\w+)\s*\(([^)]*)\)\s*\}\}", re.ASCII)
_INTEGER = re.compile(r"[+-]?\d+", re.ASCII)
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

# Functions that need no wildcard in the source, and the first server that lets them do without.
_FREE_SINCE: Version = (2, 12, 0)
_LEFT_RIGHT_SINCE: Version = (2, 15, 0)


@frozen
class TokenFunction:
    """What stands in the place of a destination token."""

    name: str
    indexes: tuple[int, ...] = ()
    """Numbers of wildcards of the source, from 1 up."""
    number: int = 0
    separator: str = ""


def token_function(target: str) -> TokenFunction | None:
    """Read a destination token without faults; None for plain text."""
    if len(target) > 1 and target[0] == "$" and _INTEGER.fullmatch(target[1:]):
        return TokenFunction(_ONE_INDEX, (whole_number(target[1:]),))
    match = _FUNCTION.search(target) if _is_call(target) else None
    name = _known(match[1]) if match else None
    if match is None or name is None:
        return None
    arguments = _arguments(match)
    if name == "split":
        return TokenFunction(name, (whole_number(arguments[0]),), separator=arguments[1])
    numbers = _integers(arguments)
    if name in ("partition", "random"):
        return TokenFunction(name, tuple(numbers[1:]), numbers[0])
    return TokenFunction(name, (numbers[0],), numbers[-1])


def _is_call(target: str) -> bool:
    return len(target) > 4 and target.startswith("{{") and target.endswith("}}")


def _arguments(match: re.Match[str]) -> list[str]:
    return [argument.strip() for argument in match[2].split(",")] if match[2].strip() else []


def transform_fault(
    source: str, destination: str, version: Version, *, strict: bool = True
) -> str | None:
    """Return why the server cannot build this transform, None where it can.

    ``strict`` is for transforms of what a stream stores; republishing is judged without.
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
    wildcards = sources.count("*")
    if len(target) > 1 and target[0] == "$":
        if not _INTEGER.fullmatch(target[1:]):
            return None
        return _indexes_fault([whole_number(target[1:])], wildcards, target)
    if _is_call(target):
        return _function_fault(target, wildcards, ">" in sources, version, strict)
    if strict and not _BLANKS.isdisjoint(target):
        return f"{target!r} has a blank"
    return None


def _function_fault(
    target: str, wildcards: int, has_rest: bool, version: Version, strict: bool
) -> str | None:
    match = _FUNCTION.search(target)
    name = _known(match[1]) if match else None
    if match is None or name is None:
        return f"{target} is not a function that the server knows"
    if strict and name in ("left", "right") and version < _LEFT_RIGHT_SINCE:
        return f"{name} needs server 2.15"
    arguments = _arguments(match)
    if version < _FREE_SINCE:
        fault = _old_partition_fault(name, arguments, target)
        if fault or name == "partition":
            return fault or _indexes_fault(_integers(arguments[1:]), wildcards, target)
    fault = _FUNCTIONS[name](arguments, wildcards, target) or _free_fault(name, wildcards, target)
    if not fault and name == "partition" and has_rest and max([0, *_integers(arguments[1:])]):
        # Without any wildcard the server does not look at the indexes; > is one, but has no index.
        return _indexes_fault(_integers(arguments[1:]), wildcards, target)
    return fault


def _old_partition_fault(name: str, arguments: list[str], target: str) -> str | None:
    """Judge the functions that 2.12 widened as older servers do."""
    if name == "random":
        return f"{target} needs server 2.12"
    if name != "partition":
        return None
    if len(arguments) < 2 or not all(_INTEGER.fullmatch(argument) for argument in arguments):
        return f"{target} takes the number of partitions, then numbers of wildcards"
    return None


def _integers(arguments: list[str]) -> list[int]:
    return [whole_number(argument) for argument in arguments]


def _free_fault(name: str, wildcards: int, target: str) -> str | None:
    if wildcards or name in ("partition", "random"):
        return None
    return f"{target} needs a * in the source"


def _indexes_fault(indexes: list[int], wildcards: int, target: str) -> str | None:
    if not wildcards:
        return f"{target} needs a * in the source"
    if any(index > wildcards for index in indexes):
        return f"{target} names more wildcards than the {wildcards} in the source"
    return None


def _wildcard(arguments: list[str], wildcards: int, target: str) -> str | None:
    if len(arguments) != 1 or not _INTEGER.fullmatch(arguments[0]):
        return f"{target} takes the number of a wildcard"
    return _indexes_fault([whole_number(arguments[0])], wildcards, target)


def _partition(arguments: list[str], wildcards: int, target: str) -> str | None:
    if not arguments or not all(_INTEGER.fullmatch(argument) for argument in arguments):
        return f"{target} takes the number of partitions, then numbers of wildcards"
    if whole_number(arguments[0]) > _INT32_MAX:
        return f"{target} has too many partitions"
    if not wildcards:
        return None
    return _indexes_fault([whole_number(argument) for argument in arguments[1:]], wildcards, target)


def _random(arguments: list[str], wildcards: int, target: str) -> str | None:
    if len(arguments) != 1 or not _INTEGER.fullmatch(arguments[0]):
        return f"{target} takes one number"
    if whole_number(arguments[0]) > _INT32_MAX:
        return f"{target} has too large a number"
    return None


def _index_and_number(arguments: list[str], wildcards: int, target: str) -> str | None:
    if len(arguments) != 2 or not all(_INTEGER.fullmatch(argument) for argument in arguments):
        return f"{target} takes the number of a wildcard and a second number"
    if not -(2**31) <= whole_number(arguments[1]) <= _INT32_MAX:
        return f"{target} has a second number beyond 32 bits"
    return _indexes_fault([whole_number(arguments[0])], wildcards, target)


def _split(arguments: list[str], wildcards: int, target: str) -> str | None:
    if len(arguments) != 2 or not _INTEGER.fullmatch(arguments[0]):
        return f"{target} takes the number of a wildcard and a separator"
    if " " in arguments[1]:
        return f"{target} has a blank in its separator"
    return _indexes_fault([whole_number(arguments[0])], wildcards, target)


_FUNCTIONS: dict[str, Callable[[list[str], int, str], str | None]] = {
    _ONE_INDEX: _wildcard,
    "partition": _partition,
    "random": _random,
    "split": _split,
    **dict.fromkeys(_INDEX_AND_NUMBER, _index_and_number),
}

# Each word of a name may begin with a capital letter or not, and only its first letter.
_SPELLINGS = {
    "wildcard": "[wW]ildcard",
    "partition": "[pP]artition",
    "random": "[rR]andom",
    "split": "[sS]plit",
    "left": "[lL]eft",
    "right": "[rR]ight",
    "splitfromleft": "[sS]plit[fF]rom[lL]eft",
    "splitfromright": "[sS]plit[fF]rom[rR]ight",
    "slicefromleft": "[sS]lice[fF]rom[lL]eft",
    "slicefromright": "[sS]lice[fF]rom[rR]ight",
}


def _known(word: str) -> str | None:
    name = word.lower()
    spelling = _SPELLINGS.get(name)
    return name if spelling and re.fullmatch(spelling, word) else None

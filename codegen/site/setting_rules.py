"""The rules of validation, by the setting that each of them is about."""

from __future__ import annotations

import ast
import inspect
import re
import types
from collections.abc import Iterable, Iterator, Sequence
from typing import Any, Final

from attrs import frozen
from codegen.site.raised_texts import constants, text_of

from twinstream.models.buckets import bucket_validation
from twinstream.models.files.shapes import SHAPES
from twinstream.models.rules import (
    consumer,
    consumer_lint,
    consumer_update,
    pull,
    stream,
    stream_environment,
    stream_lint,
    stream_update,
)
from twinstream.models.rules.rule import ForEach, Rule
from twinstream.models.version import ALWAYS, NEVER, Firsts

__all__ = ["Verdict", "all_rules", "verdicts"]

# The records whose settings the rules of a table are about: the first that has the setting counts.
_PARTS: Final = ("StreamSource", "SubjectTransform", "ExternalStream", "SourceConsumer")
_TABLES: Final[dict[str, Sequence[Any]]] = {
    "StreamConfig": (
        *(stream.STREAM_RULES, stream_environment.STREAM_ENVIRONMENT, stream_update.UPDATE_RULES),
        *(stream_update.UPDATE_ENVIRONMENT, stream_lint.STREAM_LINT),
    ),
    "ConsumerConfig": (
        *(consumer.CONSUMER_RULES, consumer_update.UPDATE_RULES),
        *(consumer_update.UPDATE_ENVIRONMENT, consumer_lint.CONSUMER_LINT),
    ),
    "PullRequest": (pull.FIRST_RULES, pull.PULL_RULES),
}
_WORD: Final = re.compile(r"\w+")


@frozen
class Verdict:
    """What validation says about a setting, what to do, and to which servers it applies."""

    rule: str
    text: str
    fix: str
    err_code: int = 0
    since: Firsts = ALWAYS
    until: Firsts = NEVER

    @property
    def servers(self) -> str:
        """The servers to which it applies, in words; empty for all that are supported."""
        since = "" if self.since == ALWAYS else f"from {_versions(self.since)} on"
        until = "" if self.until == NEVER else f"before {_versions(self.until)}"
        return " and ".join(each for each in (since, until) if each)

    @property
    def is_warning(self) -> bool:
        """Whether servers accept the setting nevertheless."""
        return self.rule.startswith("L-")


def verdicts(record: str) -> dict[str, list[Verdict]]:
    """Return what validation says about the settings of a record, by the setting."""
    found: dict[str, dict[Verdict, None]] = {}
    for owner, member, verdict in all_rules():
        if owner == record:
            found.setdefault(member, {})[verdict] = None
    return {member: list(each) for member, each in found.items()}


def all_rules() -> Iterator[tuple[str, str, Verdict]]:
    """Yield each rule with its record and its setting, several times if it has several settings.

    The setting is empty if the rule is about the whole record.
    """
    for record, tables in _TABLES.items():
        for entry in (entry for table in tables for entry in table):
            yield from _places(entry, (record, *_PARTS) if record == "StreamConfig" else (record,))
    yield from _bucket_rules()


def _places(
    entry: Any, records: tuple[str, ...], items: Iterable[str] = ()
) -> Iterator[tuple[str, str, Verdict]]:
    if isinstance(entry, ForEach):
        # The rules for a mirror or source are about its own settings, those for the items of
        # another list about the list.
        is_part = entry.items.__name__ in {"mirrors", "sources", "origins", "transforms"}
        words: set[str] = set() if is_part else _words(entry.items, set())
        for rule in entry.rules:
            yield from _places(rule, _PARTS if is_part else records, words)
        return
    of: Rule[Any] = getattr(entry, "rule", entry)
    verdict = Verdict(of.id, of.sentence, of.fix, of.err_code, of.since, of.until)
    first = _WORD.findall(of.path)[:1] or sorted(items or _words(of.test, set()))
    for record in records:
        members = [each for each in first if each in SHAPES[record]]
        if members:
            yield from ((record, member, verdict) for member in members)
            return
    yield records[0], "", verdict


def _words(value: object, seen: set[int]) -> set[str]:
    """Return the words in the texts that a test of a rule uses, also in its helpers."""
    if id(value) in seen:
        return set()
    seen.add(id(value))
    if isinstance(value, str):
        return set(_WORD.findall(value))
    if isinstance(value, tuple | list | dict | frozenset):
        return _words_of(value, seen)
    if isinstance(value, types.CodeType):
        return _words_of(value.co_consts, seen)
    if isinstance(value, type):
        return _words(vars(value).get("hit"), seen)
    if not inspect.isfunction(value) or not value.__module__.startswith("twinstream.models.rules"):
        return set()
    cells = [cell.cell_contents for cell in value.__closure__ or ()]
    used = [value.__globals__.get(each) for each in _names(value.__code__)]
    return _words_of([_without_doc(value.__code__), *cells, *used], seen)


def _words_of(values: Iterable[object], seen: set[int]) -> set[str]:
    return {word for each in values for word in _words(each, seen)}


def _without_doc(code: types.CodeType) -> types.CodeType:
    """Return code without its docstring, which is its first constant and has several words."""
    first = code.co_consts[0] if code.co_consts else None
    is_doc = isinstance(first, str) and " " in first
    return code.replace(co_consts=(None, *code.co_consts[1:])) if is_doc else code


def _names(code: types.CodeType) -> set[str]:
    inner = [each for each in code.co_consts if isinstance(each, types.CodeType)]
    return {*code.co_names, *(name for each in inner for name in _names(each))}


def _bucket_rules() -> Iterator[tuple[str, str, Verdict]]:
    """Yield the rules of buckets alone, from the statements that report them."""
    tree = ast.parse(inspect.getsource(bucket_validation))
    known = constants(tree)
    for function in (each for each in tree.body if isinstance(each, ast.FunctionDef)):
        texts: dict[str, str] = {}
        nodes = [each for each in ast.walk(function) if isinstance(each, ast.Assign | ast.Call)]
        for node in sorted(nodes, key=lambda each: (each.lineno, each.col_offset)):
            if isinstance(node, ast.Assign) and isinstance(node.targets[0], ast.Name):
                texts[node.targets[0].id] = text_of(node.value, known)
            elif isinstance(node, ast.Call) and getattr(node.func, "id", "") == "Problem":
                path, _, rule, message, *hint = node.args
                name = text_of(rule, known)
                if not name.startswith("B-"):
                    continue
                member = path.value if isinstance(path, ast.Constant) else "mirror"
                text, fix = (_text(each, texts, known) for each in (message, *hint))
                for record in ("KeyValueConfig", "ObjectStoreConfig"):
                    if member in SHAPES[record]:
                        yield record, str(member), Verdict(name, text, fix)


def _text(node: ast.expr, texts: dict[str, str], known: dict[str, str]) -> str:
    return texts[node.id] if isinstance(node, ast.Name) else text_of(node, known)


def _versions(versions: Firsts) -> str:
    return " and ".join(".".join(map(str, each)) for each in versions)

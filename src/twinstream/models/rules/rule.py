"""The definition of rules, and the evaluation of tables of rules."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import Any, Generic, Protocol, TypeVar

from attrs import field, frozen

from twinstream.models._reading import show
from twinstream.models._settings import Settings
from twinstream.models.problem import Problem
from twinstream.models.version import ALWAYS, NEVER, Firsts, Version, firsts, is_from


class Case(Protocol):
    """The input of rules: the settings, the server's version, and whether it is pedantic."""

    @property
    def settings(self) -> Settings:
        """The settings, as read."""
        ...

    @property
    def version(self) -> Version:
        """The server's version."""
        ...

    @property
    def pedantic(self) -> bool:
        """Whether a setting that the server would change is refused instead."""
        ...


C = TypeVar("C", bound=Case)
I = TypeVar("I", bound=Case)  # noqa: E741
In = TypeVar("In", bound=Case, contravariant=True)


@frozen
class Hit:
    """One place where a rule is violated."""

    path: str
    value: Any = None
    detail: str = ""


Found = bool | Iterable[Hit]


@frozen
class Rule(Generic[C]):
    """One reason for a refusal."""

    id: str
    """Identifier, such as `S-DUP-AGE`."""

    err_code: int
    """The server's error code."""

    path: str
    """The setting concerned, if the test names no other."""

    sentence: str
    """The problem; `{value}` and `{detail}` are replaced by those of the hit."""

    fix: str
    """What to try."""

    test: Callable[[C], Found]
    """Returns whether the rule is violated, or where."""

    since: Firsts = field(default=ALWAYS, converter=firsts)
    """First server with the rule, or the first of each release line that has it."""

    until: Firsts = field(default=NEVER, converter=firsts)
    """First server without the rule, likewise."""

    pedantic: bool = False
    """Whether only a pedantic request is refused; in others the setting is changed implicitly."""

    def applies(self, version: Version, pedantic: bool) -> bool:
        """Whether a server of `version` applies the rule to a request, pedantic or not."""
        has_it = is_from(version, self.since) and not is_from(version, self.until)
        return has_it and (pedantic or not self.pedantic)

    def problems(self, case: C) -> Sequence[Problem]:
        """Return a problem for each place where the rule applies and is violated."""
        if not self.applies(case.version, case.pedantic):
            return ()
        found = self.test(case)
        return () if found is False else self.explained(case, found)

    def explained(self, case: C, found: Found) -> Sequence[Problem]:
        """Return a problem for each place found by the test."""
        if found is False:
            return ()
        if found is True:
            found = (Hit(self.path, case.settings[self.path]),)
        return [self._problem(hit) for hit in found]

    def _problem(self, hit: Hit) -> Problem:
        message = self.sentence.format(value=show(hit.value), detail=hit.detail)
        return Problem(hit.path, hit.value, self.id, message, self.fix, self.err_code)


class Judge(Protocol[In]):
    """A rule, or rules that are evaluated together."""

    def problems(self, case: In, /) -> Sequence[Problem]:
        """Return the problems."""
        ...


@frozen
class ForEach(Generic[C, I]):
    """Rules that the server evaluates item by item: all for the first item, then for the next."""

    items: Callable[[C], Iterable[I]]
    rules: Sequence[Judge[I]]

    def problems(self, case: C) -> Sequence[Problem]:
        """Return the problems of the first item, then those of the next."""
        found: list[Problem] = []
        for item in self.items(case):
            for rule in self.rules:
                found += rule.problems(item)
        return found


_Tests = list[tuple[Callable[[Any], Found] | None, Any]]

_APPLICABLE: dict[tuple[int, Version, bool], tuple[object, _Tests]] = {}
"""The applicable tests by the id of the table. Referencing the table keeps its id unique."""


def judge(table: Sequence[Judge[C]], case: C) -> list[Problem]:
    """Return all problems in the order of the table: the first is the server's error."""
    # Most rules are almost never violated, so only their tests are run until there is a hit.
    key = (id(table), case.version, case.pedantic)
    known = _APPLICABLE.get(key)
    if known is None:
        known = _APPLICABLE[key] = (table, _applicable(table, case))
    found: list[Problem] = []
    for test, entry in known[1]:
        if test is None:
            found += entry.problems(case)
            continue
        broken = test(case)
        if broken is not False:
            found += entry.explained(case, broken)
    return found


def _applicable(table: Sequence[Judge[C]], case: C) -> _Tests:
    tests: _Tests = []
    for entry in table:
        if not isinstance(entry, Rule):
            tests.append((None, entry))
        elif entry.applies(case.version, case.pedantic):
            tests.append((entry.test, entry))
    return tests

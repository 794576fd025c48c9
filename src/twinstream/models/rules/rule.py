"""What a rule is, and how a table of them is applied."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import Any, Generic, Protocol, TypeVar

from attrs import field, frozen

from twinstream.models._reading import show
from twinstream.models._settings import Settings
from twinstream.models.problem import Problem
from twinstream.models.version import ALWAYS, NEVER, Firsts, Version, firsts, is_from


class Case(Protocol):
    """What rules look at: the settings, the server's version, and whether it is pedantic."""

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
        """Whether a setting that the server would change is refused."""
        ...


C = TypeVar("C", bound=Case)
I = TypeVar("I", bound=Case)  # noqa: E741
In = TypeVar("In", bound=Case, contravariant=True)


@frozen
class Hit:
    """One place where a rule is broken."""

    path: str
    value: Any = None
    detail: str = ""


Found = bool | Iterable[Hit]


@frozen
class Rule(Generic[C]):
    """One reason for a refusal."""

    id: str
    """Identity, such as ``S-DUP-AGE``."""

    err_code: int
    """The code that the server answers."""

    path: str
    """The setting at fault, where the test names no other."""

    sentence: str
    """What is wrong; ``{value}`` and ``{detail}`` stand for those of the hit."""

    fix: str
    """What to try."""

    test: Callable[[C], Found]
    """Whether the rule is broken, or where."""

    since: Firsts = field(default=ALWAYS, converter=firsts)
    """First server that has the rule, or the first of each line that got it."""

    until: Firsts = field(default=NEVER, converter=firsts)
    """First server that has it no more, likewise."""

    pedantic: bool = False
    """Whether only a pedantic request is refused; others are changed silently."""

    def applies(self, version: Version, pedantic: bool) -> bool:
        """Whether a server of ``version`` has the rule for such a request."""
        has_it = is_from(version, self.since) and not is_from(version, self.until)
        return has_it and (pedantic or not self.pedantic)

    def problems(self, case: C) -> Sequence[Problem]:
        """Return a problem for each place where the rule holds and is broken."""
        if not self.applies(case.version, case.pedantic):
            return ()
        found = self.test(case)
        return () if found is False else self.explained(case, found)

    def explained(self, case: C, found: Found) -> Sequence[Problem]:
        """Return a problem for each place that the test found."""
        if found is False:
            return ()
        if found is True:
            found = (Hit(self.path, case.settings[self.path]),)
        return [self._problem(hit) for hit in found]

    def _problem(self, hit: Hit) -> Problem:
        message = self.sentence.format(value=show(hit.value), detail=hit.detail)
        return Problem(hit.path, hit.value, self.id, message, self.fix, self.err_code)


class Judge(Protocol[In]):
    """A rule, or rules tried together."""

    def problems(self, case: In, /) -> Sequence[Problem]:
        """Return what is wrong."""
        ...


@frozen
class ForEach(Generic[C, I]):
    """Rules that the server tries one item after the other: all on the first, then the next."""

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
"""What of a table applies, by the table's identity; the table itself is kept, so that it lasts."""


def judge(table: Sequence[Judge[C]], case: C) -> list[Problem]:
    """Return all problems in the order of the table: the first is the server's error."""
    # Nearly every rule is kept nearly always: nothing but its test is run before a hit.
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

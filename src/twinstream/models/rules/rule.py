"""Rules of the server for configs, and the evaluation of tables of rules."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import Any, Generic, Protocol, TypeVar

from attrs import field, frozen

from twinstream.models.files.reading import show
from twinstream.models.files.settings import Settings
from twinstream.models.problem import Problem
from twinstream.models.version import ALWAYS, NEVER, Firsts, Version, firsts, is_from


class Case(Protocol):
    """The input of rules: the settings, the version of the server, and the `pedantic` flag."""

    @property
    def settings(self) -> Settings:
        """The settings in the request."""
        ...

    @property
    def version(self) -> Version:
        """The version of the server whose rules apply."""
        ...

    @property
    def pedantic(self) -> bool:
        """Whether the server refuses a setting instead of changing it."""
        ...


C = TypeVar("C", bound=Case)
I = TypeVar("I", bound=Case)  # noqa: E741
In = TypeVar("In", bound=Case, contravariant=True)


@frozen
class Hit:
    """One setting that violates a rule. `detail` is additional text for the message."""

    path: str
    value: Any = None
    detail: str = ""


Found = bool | Iterable[Hit]


@frozen
class Rule(Generic[C]):
    """One reason for which a server refuses a request, or for a warning."""

    id: str
    """The identifier, such as `S-DUP-AGE`."""

    err_code: int
    """The error code that the server returns, or the status for a pull request; 0 for warnings."""

    path: str
    """The path of the setting that is reported if `test` returns True."""

    sentence: str
    """The message. `{value}` and `{detail}` are replaced by the attributes of the `Hit`."""

    fix: str
    """The hint how to solve the problem."""

    test: Callable[[C], Found]
    """A function that returns whether the rule is violated, or a `Hit` for each violation."""

    since: Firsts = field(default=ALWAYS, converter=firsts)
    """The server versions from which the rule applies: one, or one for each release line."""

    until: Firsts = field(default=NEVER, converter=firsts)
    """The server versions from which the rule no longer applies: one, or one for each line."""

    pedantic: bool = False
    """Whether the rule is only for pedantic requests. In others, the server changes the setting."""

    def applies(self, version: Version, pedantic: bool) -> bool:
        """Whether a server of `version` applies the rule to a request with this `pedantic` flag."""
        has_it = is_from(version, self.since) and not is_from(version, self.until)
        return has_it and (pedantic or not self.pedantic)

    def problems(self, case: C) -> Sequence[Problem]:
        """Return a problem for each violation of the rule; none if the rule does not apply."""
        if not self.applies(case.version, case.pedantic):
            return ()
        found = self.test(case)
        return () if found is False else self.explained(case, found)

    def explained(self, case: C, found: Found) -> Sequence[Problem]:
        """Return a problem for each violation in `found`, the result of the test."""
        if found is False:
            return ()
        if found is True:
            found = (Hit(self.path, case.settings[self.path]),)
        return [self._problem(hit) for hit in found]

    def _problem(self, hit: Hit) -> Problem:
        message = self.sentence.format(value=show(hit.value), detail=hit.detail)
        return Problem(hit.path, hit.value, self.id, message, self.fix, self.err_code)


class Judge(Protocol[In]):
    """An entry of a table: a rule, or rules that are evaluated together."""

    def problems(self, case: In, /) -> Sequence[Problem]:
        """Return the problems that the rules find in `case`."""
        ...


@frozen
class ForEach(Generic[C, I]):
    """Rules for the items of a list, such as the sources of a stream.

    The server evaluates all rules for the first item, then for the next item.
    """

    items: Callable[[C], Iterable[I]]
    rules: Sequence[Judge[I]]

    def problems(self, case: C) -> Sequence[Problem]:
        """Return the problems that the rules find, ordered by item."""
        found: list[Problem] = []
        for item in self.items(case):
            for rule in self.rules:
                found += rule.problems(item)
        return found


_Tests = list[tuple[Callable[[Any], Found] | None, Any]]

# A cache: the table and its applicable tests, by the id of the table, version and `pedantic`.
# The cache keeps a reference to the table, so that no other table can get the same id.
_APPLICABLE: dict[tuple[int, Version, bool], tuple[object, _Tests]] = {}


def judge(table: Sequence[Judge[C]], case: C) -> list[Problem]:
    """Return all problems that a table of rules finds in `case`, in the order of the table.

    The server would return only the first of these problems, as its error.
    """
    # Most tests find nothing, so they are called directly, without the methods of `Rule`.
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
    """Return the tests that a table has for the version and mode of a case."""
    tests: _Tests = []
    for entry in table:
        if not isinstance(entry, Rule):
            tests.append((None, entry))
        elif entry.applies(case.version, case.pedantic):
            tests.append((entry.test, entry))
    return tests

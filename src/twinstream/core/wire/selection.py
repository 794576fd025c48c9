"""Arguments that select by subjects, keys or kinds: one, an iterable of them, or None for all."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final, TypeVar

from twinstream.core.arguments.check_arguments import check_kind
from twinstream.core.wire.subjects import check_filter

__all__ = ["NOTHING", "one_or_several", "subject_filters"]

T = TypeVar("T")

NOTHING: Final = "$JS.API.NOTHING"
"""The filter for an empty selection, which matches no message.

The server takes an empty list of filters for all messages. A list that a program computed must not
have this effect. No client publishes on this subject, because it is one of the JetStream API.
"""


def one_or_several(given: str | Iterable[T], name: str, what: str) -> tuple[str | T, ...]:
    """Return the items of the argument `name`, which is one text or an iterable.

    Raises `BadArgument` for another object; `what` describes an item.
    """
    if isinstance(given, str):
        return (given,)
    check_kind(given, Iterable, name, f"{what} or an iterable of them")
    return tuple(given)


def subject_filters(subjects: str | Iterable[str] | None) -> tuple[str, ...]:
    """Return subject filters as a tuple, which is empty for all subjects.

    An empty iterable becomes a filter that matches nothing. Raises `BadArgument` for an invalid
    filter.
    """
    if subjects is None:
        return ()
    filters = one_or_several(subjects, "subjects", "a subject") or (NOTHING,)
    for each in filters:
        check_filter(each)
    # A filter that matches everything makes the other filters redundant.
    return () if ">" in filters else tuple(dict.fromkeys(filters))

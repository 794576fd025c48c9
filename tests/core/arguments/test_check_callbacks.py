"""Validation of user callbacks."""

from __future__ import annotations

import pytest

from twinstream.core.arguments.check_callbacks import check_callback
from twinstream.errors import BadArgument


class Log:
    def note(self, news: object, level: str = "info") -> None: ...


@pytest.mark.parametrize("function", [None, print, Log().note, lambda *news: None, [].append])
def test_valid_callbacks_are_accepted(function: object) -> None:
    check_callback(function, "on_event")


@pytest.mark.parametrize(
    "function", [lambda: None, lambda news, more: None, Log.note, lambda *, news: None]
)
def test_callback_with_other_parameters_is_refused_at_once(function: object) -> None:
    with pytest.raises(BadArgument, match=r"on_event must take one argument, <function .* takes "):
        check_callback(function, "on_event")

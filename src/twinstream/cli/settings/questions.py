"""Questions for settings that a command line does not give, asked on a terminal only."""

from __future__ import annotations

import sys
from collections.abc import Iterable, MutableMapping
from typing import Any, Final

import click
from attrs import frozen
from click.core import ParameterSource

__all__ = ["Question", "ask", "defaults_option"]

defaults_option: Final = click.option(
    "--defaults", is_flag=True, help="Ask no questions: take the defaults for what is not given."
)


@frozen
class Question:
    """A question for the value of an option: its text and the default answer."""

    option: str
    """The name of the option's value."""
    text: str
    default: str
    kind: Any = click.STRING
    """The type of the answer for click, the same as that of the option."""


def ask(questions: Iterable[Question], given: MutableMapping[str, Any], *, silent: bool) -> None:
    """Ask for each value that is not `given`, and add the answers.

    Nothing is asked with `silent`, or if standard input or standard error is no terminal.
    """
    if silent or not (sys.stdin.isatty() and sys.stderr.isatty()):
        return
    context = click.get_current_context()
    for each in questions:
        if context.get_parameter_source(each.option) is ParameterSource.COMMANDLINE:
            continue
        answer = click.prompt(each.text, default=each.default, type=each.kind, err=True)
        given[each.option] = answer

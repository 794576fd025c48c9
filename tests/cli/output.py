"""Helpers that read the output of a command."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

from click.testing import Result

from tests.cli.terminal import LIMIT
from twinstream.core.deadline import Deadline

Run = Callable[..., Result]


def in_time(attempt: Callable[[], Result], is_meant: Callable[[Result], object]) -> Result:
    """Run a command with a short timeout again until its result is meant; return the last result.

    The timeout is also that of connecting, so the command may fail before what a test is about.
    """
    deadline = Deadline.after(LIMIT)
    while not is_meant(result := attempt()) and not deadline.expired():
        pass
    return result


def json_lines(result: Result) -> list[dict[str, Any]]:
    """Return the JSON objects on standard output, which must contain nothing else."""
    return [json.loads(line) for line in result.stdout.splitlines()]

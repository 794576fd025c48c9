"""Helpers that read the output of a command."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

from click.testing import Result

Run = Callable[..., Result]


def json_lines(result: Result) -> list[dict[str, Any]]:
    """Return the JSON objects on standard output, which must contain nothing else."""
    return [json.loads(line) for line in result.stdout.splitlines()]

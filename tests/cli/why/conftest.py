"""A function that stages a stream."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

import pytest

import js_sync
from tests.cli.output import Run
from tests.cli.why.staging import Stage


@pytest.fixture
def staged(run: Run, jet: js_sync.JetStream) -> Callable[..., Stage]:
    """Return a function that creates a stream with settings."""
    return partial(Stage.of, run, jet)

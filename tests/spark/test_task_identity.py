"""Whose rows are whose: the identity of a task, and where there is none."""

from __future__ import annotations

import pytest

from js_spark.errors import OptionError
from js_spark.task_identity import TaskIdentity


def test_two_writes_of_one_batch_have_names_of_their_own() -> None:
    one, two = (TaskIdentity.within("q", 3, 0, name) for name in ("one", "two"))
    assert one.row(5) == "q-one-3-0-5"
    assert two.row(5) == "q-two-3-0-5"


def test_a_write_within_a_batch_needs_a_name() -> None:
    shared = TaskIdentity.within("q", 3, 0, None)
    for ask in (shared.check, lambda: shared.row(0)):
        with pytest.raises(OptionError, match="'writeId': is required for a batch write within"):
            ask()

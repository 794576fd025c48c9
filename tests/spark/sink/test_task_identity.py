"""Whose rows are whose: the identity of a task, and where there is none."""

from __future__ import annotations

from collections.abc import Mapping
from typing import cast

import pytest
from attrs import frozen
from pyspark import TaskContext

from twinstream.spark.errors import OptionError
from twinstream.spark.sink.task_identity import TaskIdentity


def test_two_writes_of_one_batch_have_names_of_their_own() -> None:
    one, two = (TaskIdentity.within("q", 3, 0, name) for name in ("one", "two"))
    assert one.prefix() == "q-one-3-0-"
    assert two.prefix() == "q-two-3-0-"


def test_a_write_within_a_batch_needs_a_name() -> None:
    shared = TaskIdentity.within("q", 3, 0, None)
    for ask in (shared.check, shared.prefix):
        with pytest.raises(OptionError, match="'writeId': is required for a batch write within"):
            ask()


@frozen
class Task:
    """What a task hears of its place."""

    properties: Mapping[str, str]

    def getLocalProperty(self, key: str) -> str | None:
        return self.properties.get(key)

    def partitionId(self) -> int:
        return 2


def identity(properties: Mapping[str, str]) -> TaskIdentity:
    return TaskIdentity.of(cast(TaskContext, Task(properties)), "w", given=True, streams=False)


def test_write_without_a_known_batch_has_no_identity() -> None:
    session = {"spark.sql.streaming.internal.stateStore.partitions": "2"}
    stray = identity(session)
    for ask in (stray.check, stray.prefix):
        with pytest.raises(OptionError, match="'writeId': does not identify a write within"):
            ask()
    properties = {**session, "sql.streaming.queryId": "q", "streaming.sql.batchId": "3"}
    assert identity(properties).prefix() == "q-w-3-2-"
    assert identity({}).prefix() == "w-0-2-"

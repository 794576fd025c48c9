"""Turns of batches and of commands that work on the tables alone."""

from __future__ import annotations

import threading
from pathlib import Path

import pytest

from tests.soak import LONGEST
from twinstream.spark.errors import PipelineBusy
from twinstream.spark.pipeline.settings.folders import Folders
from twinstream.spark.pipeline.tables.table_lock import TableLock


def never() -> bool:
    return False


def always() -> bool:
    return True


@pytest.fixture
def lock(tmp_path: Path) -> TableLock:
    return TableLock(Folders(tmp_path))


def test_sources_share_the_tables(lock: TableLock) -> None:
    with lock.shared(never) as one, lock.shared(always) as two:
        assert one
        assert two


def test_command_waits_for_batches_and_prevents_further_ones(lock: TableLock) -> None:
    entered, left = threading.Event(), threading.Event()

    def work() -> None:
        with lock.alone("compact"):
            entered.set()
            assert left.wait(LONGEST)

    command = threading.Thread(target=work)
    with lock.shared(never) as granted:
        assert granted
        command.start()
        asked: list[bool] = []

        def is_refused() -> bool:
            asked.append(entered.is_set())
            return True

        refused = False
        while not refused:  # until the command has closed the gate
            with lock.shared(is_refused) as again:
                refused = not again
        assert asked == [False], "the command waits for the batch, and the next batch for it"
    assert entered.wait(LONGEST)
    with lock.shared(always) as granted:
        assert not granted
    user = lock.user()
    assert user is not None
    assert user.startswith("'compact' (process ")
    with (
        pytest.raises(PipelineBusy, match="is in use by 'compact'"),
        lock.alone("vacuum", waits=False),
    ):
        pass
    left.set()
    command.join()
    with lock.shared(always) as granted:
        assert granted
    assert lock.user() is None


def test_a_command_waits_for_its_turn(lock: TableLock) -> None:
    entered = threading.Event()

    def work() -> None:
        with lock.alone("vacuum"):
            entered.set()

    command = threading.Thread(target=work)
    with lock.alone("compact"):
        command.start()
        assert not entered.wait(0.3)
    assert entered.wait(LONGEST)
    command.join(LONGEST)

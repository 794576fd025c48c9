"""Tasks of a batch as a job of Spark: their reports and their errors."""

from __future__ import annotations

import threading
import time
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from tests.soak import LONGEST
from tests.tuned import Tuned
from twinstream.errors import NoResponders
from twinstream.lake.task_report import TaskFile, TaskReport
from twinstream.spark.errors import DecodeFailure
from twinstream.spark.landing.spark_engine import SparkEngine

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


def attempts(folder: Path) -> int:
    return len(list(folder.iterdir()))


def test_each_part_has_a_report(spark: SparkSession) -> None:
    def task(part: int) -> TaskReport:
        return TaskReport(part, part + 5, (TaskFile("t", Path("/f"), 5, part, part + 4, 9),))

    engine = SparkEngine(spark)
    assert engine.run(task, [1, 6], "") == [task(1), task(6)]
    assert engine.run(task, [], "") == []
    assert engine.slots == 2


def test_a_permanent_error_is_raised_as_it_is_and_without_another_attempt(
    spark: SparkSession, tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    def task(part: int) -> TaskReport:
        from uuid import uuid4

        (tmp_path / uuid4().hex).touch()
        raise DecodeFailure("S", 7, "broken")

    with pytest.raises(DecodeFailure, match="stream S, sequence 7: broken") as raised:
        SparkEngine(spark).run(task, [1], "")
    assert raised.value.seq == 7
    assert attempts(tmp_path) == 1
    assert "Traceback" not in "".join(capfd.readouterr())


def test_after_a_transient_error_a_task_is_tried_again(spark: SparkSession, tmp_path: Path) -> None:
    def task(part: int) -> TaskReport:
        from uuid import uuid4

        (tmp_path / uuid4().hex).touch()
        if len(list(tmp_path.iterdir())) < 3:
            raise NoResponders("orders")
        return TaskReport(part, part + 1)

    assert SparkEngine(spark).run(task, [1], "") == [TaskReport(1, 2)]
    assert attempts(tmp_path) == 3


def test_a_cancelled_job_fails_after_its_tasks_have_ended(
    spark: SparkSession, tmp_path: Path, tuned: Tuned
) -> None:
    """Otherwise Spark prints a trace about each task if the program stops Spark at once."""

    def task(part: int) -> TaskReport:
        import time

        (tmp_path / str(part)).touch()
        time.sleep(100)
        return TaskReport(part, part + 1)

    tuned("end of tasks", LONGEST)
    engine = SparkEngine(spark)

    def cancel() -> None:
        deadline = time.monotonic() + LONGEST
        while attempts(tmp_path) < 2 and time.monotonic() < deadline:
            time.sleep(0.02)
        engine.cancel("cancelled")

    canceller = threading.Thread(target=cancel)
    canceller.start()
    with pytest.raises(Exception, match="cancelled"):
        engine.run(task, [1, 2], "cancelled")
    tracker = spark.sparkContext.statusTracker()
    (job,) = tracker.getJobIdsForGroup("cancelled")
    found = tracker.getJobInfo(job)
    assert found is not None
    assert found.status == "FAILED"
    stage = tracker.getStageInfo(found.stageIds[0])
    assert stage is not None
    assert stage.numActiveTasks == 0
    canceller.join(LONGEST)

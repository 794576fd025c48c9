"""Let Spark run the tasks of a batch. No message passes through Java."""

from __future__ import annotations

import pickle
import time
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Final, TypeVar, cast

from twinstream.errors import TwinstreamError
from twinstream.errors.transient import is_transient
from twinstream.lake.task_report import TaskReport
from twinstream.spark.running import slots_of

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

__all__ = ["SparkEngine"]

_Part = TypeVar("_Part")
# How long `run` waits for the tasks of a failed job to end (seconds). Spark kills a Python process
# 2 s after it has interrupted its task.
_END_TIMEOUT: Final = 5.0
# The time between two checks whether the tasks have ended (seconds).
_END_CHECK_INTERVAL: Final = 0.02


class SparkEngine:
    """The engine whose tasks are those of one Spark job.

    Spark schedules and retries the tasks. A repeated task writes new files. Files of failed
    attempts are ignored, because a task reports its files only at its end.
    """

    def __init__(self, spark: SparkSession) -> None:
        self._spark: Final = spark

    @property
    def slots(self) -> int:
        """The number of tasks that run at once; on a cluster, of the executors that run now."""
        return slots_of(self._spark) or 1

    def run(
        self, task: Callable[[_Part], TaskReport], parts: Sequence[_Part], group: str
    ) -> list[TaskReport]:
        """Run one task for each part, in one job, and return the reports of the tasks.

        Raises the error of a task. If the error is permanent, Spark does not repeat the task. The
        call ends after its tasks, also if `cancel` ended them.
        """
        if not parts:
            return []

        from pyspark.sql.functions import udf

        def run_part(at: int) -> bytes:
            try:
                return pickle.dumps(task(parts[at]))
            except TwinstreamError as error:
                if is_transient(error):
                    raise  # Spark repeats the task
                # Spark would also repeat a task with this error, and print pages of traces.
                return pickle.dumps(error)

        count = len(parts)
        if group:
            self._spark.sparkContext.setJobGroup(group, "landing", interruptOnCancel=True)
        numbers = self._spark.range(0, count, 1, count)  # one row and one task for each part
        # The function must be nondeterministic, because Spark may call a deterministic function
        # twice for a row. An Arrow function would need pandas, and would not be faster, because a
        # task has only one row.
        call = udf(run_part, "BINARY", useArrow=False).asNondeterministic()
        try:
            rows = numbers.select(call("id").alias("outcome")).collect()
        except Exception:
            # Spark reports the failure before the other tasks have ended. If the caller stopped
            # Spark now, Spark would print pages of traces about each of them.
            if group:
                self._await_tasks(group)
            raise
        outcomes = [pickle.loads(row.outcome) for row in rows]
        for outcome in outcomes:
            if isinstance(outcome, TwinstreamError):
                raise outcome
        return outcomes

    def cancel(self, group: str) -> None:
        """End the job of a group, which then fails."""
        self._spark.sparkContext.cancelJobGroup(group)

    def _await_tasks(self, group: str) -> None:
        """Wait until no task of a group runs, but at most `_END_TIMEOUT`."""
        deadline = time.monotonic() + _END_TIMEOUT
        while self._has_tasks(group) and time.monotonic() < deadline:
            time.sleep(_END_CHECK_INTERVAL)

    def _has_tasks(self, group: str) -> bool:
        """Return whether a job of a group runs, or one of its tasks."""
        tracker = self._spark.sparkContext.statusTracker()
        for job in map(tracker.getJobInfo, tracker.getJobIdsForGroup(group)):
            if job is None:
                continue  # Spark has forgotten it
            # Spark knows all tasks of a job when it knows that the job has failed.
            if job.status == "RUNNING":
                return True
            numbers = cast("list[int]", job.stageIds)  # pyright: ignore[reportUnknownMemberType]
            stages = map(tracker.getStageInfo, numbers)
            if any(stage is not None and stage.numActiveTasks for stage in stages):
                return True
        return False

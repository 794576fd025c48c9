"""Create the tables that tasks have met first, and let the tasks run again.

A catalog decides where a table is, so a table by a token must exist before a task can write its
rows. Only the tasks know the tokens of a batch. They leave out the rows of such tables, and report
the names. So the messages of a batch are read twice if it has a token that no earlier batch had.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from pathlib import Path

from twinstream.lake.task_report import TaskReport
from twinstream.spark.landing.outputs import LakeOutput
from twinstream.spark.landing.split_tables import TableNames

__all__ = ["reports_of"]


def reports_of(
    run: Callable[[Path | LakeOutput], list[TaskReport]],
    output: Path | LakeOutput,
    create: Callable[[Sequence[str]], Path | LakeOutput],
    names: TableNames,
    existing: Callable[[str], Iterable[str]],
) -> list[TaskReport]:
    """Return the reports of tasks that have written all their rows.

    `run` runs the tasks, which write to `output`. `create` creates tables, and returns where tasks
    write files then. Raises `OptionError`, before a table is created, if there would be too many.
    `existing` returns the tables of the lake whose names begin with a prefix.
    """
    while True:
        reports = run(output)
        new = sorted({table for each in reports for table in each.missing})
        if not new:
            return reports
        names.refuse_many([*existing(names.table), *new])
        output = create(new)

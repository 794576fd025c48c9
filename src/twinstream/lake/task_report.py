"""What a task of a batch reports: its range, and the files that it wrote."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any, TypeAlias

from attrs import field, frozen

from twinstream.lake.errors import JournalError

__all__ = ["Bounds", "TaskFile", "TaskReport", "check_parts", "files_by_table"]


Bounds: TypeAlias = tuple[Any, Any]
"""The lowest and the highest value of a column."""


@frozen
class TaskFile:
    """A finished file with rows of one table. `first` and `last` are the bounds of their sequences.

    No other file has its name, and it is durable. On an object store, `path` is relative to the
    lake. `bytes` is the size of the file. `bounds` has the bounds of some columns, which readers of
    a table use to skip files, and `nulls` the numbers of nulls in some columns. `partition` is the
    partition of all rows, such as `region=eu`; it is empty in a table without partitions.
    """

    table: str
    path: Path
    rows: int
    first: int
    last: int
    bytes: int
    bounds: Mapping[str, Bounds] = field(factory=dict[str, Bounds])
    partition: str = ""
    nulls: Mapping[str, int] = field(factory=dict[str, int])


@frozen
class TaskReport:
    """The report of a task that has read the sequences from `start` up to, not including, `end`.

    `missing` are the tables whose rows it has not written, because the tables do not exist yet.
    """

    start: int
    end: int
    files: tuple[TaskFile, ...] = ()
    missing: tuple[str, ...] = ()

    @property
    def rows(self) -> int:
        """The number of rows in all files, which is the number of messages that the task read."""
        return sum(each.rows for each in self.files)


def check_parts(parts: Sequence[tuple[int, int]], reports: Iterable[TaskReport]) -> None:
    """Raise `JournalError` unless each part of a batch has one report with rows of the part alone.

    `parts` are the first sequence and the end of each part, ascending and without overlaps.
    """
    reported = sorted(reports, key=lambda each: each.start)
    if [(each.start, each.end) for each in reported] != list(parts):
        raise JournalError(
            f"the tasks of a batch reported {len(reported)} parts, and it has {len(parts)}: nothing"
            " of it was landed; please report this"
        )
    for report in reported:
        for file in report.files:
            if file.first < report.start or file.last >= report.end:
                raise JournalError(
                    f"a task that read sequences {report.start} to {report.end - 1} reported a file"
                    f" with {file.first} to {file.last}: nothing of it was landed; please report"
                    " this"
                )


def files_by_table(reports: Iterable[TaskReport]) -> dict[str, list[TaskFile]]:
    """Return the files of all reports by the name of their table, in the order of the names."""
    found: dict[str, list[TaskFile]] = {}
    files = [file for report in reports for file in report.files]
    for file in sorted(files, key=lambda each: each.table):
        found.setdefault(file.table, []).append(file)
    return found

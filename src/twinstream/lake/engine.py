"""What runs the tasks of a batch."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Protocol, TypeVar

from twinstream.lake.task_report import TaskReport

__all__ = ["Engine"]

_Part = TypeVar("_Part")


class Engine(Protocol):
    """Runs tasks, at once and in other processes. It may run a task again after a failure."""

    @property
    def slots(self) -> int:
        """The number of tasks that run at once."""
        ...

    def run(
        self, task: Callable[[_Part], TaskReport], parts: Sequence[_Part], group: str
    ) -> list[TaskReport]:
        """Call `task` for each part, and return one report for each.

        Calls with a `group` can be ended by `cancel`.
        """
        ...

    def cancel(self, group: str) -> None:
        """Let the tasks of a group end, and the call of `run` with them fail."""
        ...

"""Run the tasks of a batch in processes of this machine."""

from __future__ import annotations

import multiprocessing
import os
import signal
import threading
from collections.abc import Callable, Generator, Sequence
from concurrent.futures import ProcessPoolExecutor
from contextlib import contextmanager
from typing import Final, Self, TypeVar

from twinstream.lake.task_report import TaskReport

__all__ = ["LocalEngine"]

_Part = TypeVar("_Part")


class LocalEngine:
    """The engine whose tasks are calls in processes of this machine, as many as it has cores.

    A batch with one part is landed in this process, because the start of another one takes longer
    than a small batch. The processes of other batches are kept until the end of the `with` block.
    """

    def __init__(self) -> None:
        self._pools: Final[dict[str, ProcessPoolExecutor]] = {}

    @property
    def slots(self) -> int:
        """The number of tasks that run at once."""
        return os.cpu_count() or 1

    def run(
        self, task: Callable[[_Part], TaskReport], parts: Sequence[_Part], group: str
    ) -> list[TaskReport]:
        """Call `task` for each part, and return one report for each."""
        if len(parts) <= 1:
            return [task(each) for each in parts]
        pool = self._pools.get(group)
        if pool is None:
            # A forked process would have the locks of threads that it does not have.
            spawn = multiprocessing.get_context("spawn")
            pool = ProcessPoolExecutor(self.slots, mp_context=spawn, initializer=_begin)
            self._pools[group] = pool
        try:
            with _interrupts_held():
                reports = pool.map(task, parts)  # this starts the processes
            return list(reports)
        except Exception:
            self.cancel(group)
            raise

    def cancel(self, group: str) -> None:
        """End the processes of a group. The call of `run` that waits for them then fails."""
        pool = self._pools.pop(group, None)
        if pool is not None:
            # Before Python 3.14, a pool has no method for this.
            for process in list((pool._processes or {}).values()):
                process.terminate()
            pool.shutdown(wait=False, cancel_futures=True)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        """End all processes."""
        for group in list(self._pools):
            self.cancel(group)


@contextmanager
def _interrupts_held() -> Generator[None]:
    """Hold back SIGINT in this thread and in processes that it starts.

    Without this, Ctrl-C would end processes that have not called `_begin` yet, each with a
    traceback. This thread gets the signal at the end of the block.
    """
    before = signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT})
    try:
        yield
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)


def _begin() -> None:
    """Prepare a process of tasks.

    A terminal sends Ctrl-C to all processes, and the driver decides what happens then. Without the
    thread, the processes of a killed driver would wait for tasks for ever.
    """
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    threading.Thread(target=_end_with_driver, name="twinstream-driver", daemon=True).start()


def _end_with_driver() -> None:
    driver = multiprocessing.parent_process()
    if driver is not None:
        driver.join()
        os._exit(1)

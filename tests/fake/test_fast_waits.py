"""The fast waits of the asyncio twin end as those of `Signal.sleep`, its readable version."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable

from hypothesis import given, settings
from hypothesis import strategies as st

from js_async.runtime.concurrency import Signal
from js_async.runtime.fast import FastWaits
from tests.property_examples import examples
from twinstream.core.deadline import NEVER, Deadline

# A few iterations of the loop: both versions have then done what a step causes.
SETTLED = 8
SIGNALS = 3
NUMBERS = st.integers(0, SIGNALS - 1)

Sleep = Callable[[Signal, Deadline], Awaitable[bool]]
Operation = tuple[str, int]

WAITS = st.tuples(st.sampled_from(["wait", "wait until a past deadline"]), NUMBERS)
CHANGES = st.tuples(st.sampled_from(["set", "clear", "cancel the last wait"]), NUMBERS)
READS = st.lists(CHANGES, max_size=4)
STEPS = st.lists(st.tuples(st.lists(WAITS | CHANGES, max_size=4), READS), max_size=8)


class Run:
    """The tasks that wait for some signals, and what became of them."""

    def __init__(self, sleep: Sleep) -> None:
        self.sleep = sleep
        self.signals = [Signal() for _ in range(SIGNALS)]
        self.tasks: list[asyncio.Task[tuple[bool, bool]]] = []

    async def wait(self, number: int, deadline: Deadline) -> tuple[bool, bool]:
        """Wait twice, as a loop over messages does: the task that resumes waits again at once."""
        signal = self.signals[number]
        first = await self.sleep(signal, deadline)
        signal.clear()
        return first, await self.sleep(signal, deadline)

    def change(self, operation: Operation) -> None:
        word, number = operation
        match word:
            case "wait":
                self.tasks.append(asyncio.create_task(self.wait(number, NEVER)))
            case "wait until a past deadline":
                self.tasks.append(asyncio.create_task(self.wait(number, Deadline(0.0))))
            case "set":
                self.signals[number].set()
            case "clear":
                self.signals[number].clear()
            case _:
                if self.tasks:
                    self.tasks[-1].cancel(f"by {number}")

    def states(self) -> list[object]:
        return [state_of(task) for task in self.tasks]


def state_of(task: asyncio.Task[tuple[bool, bool]]) -> object:
    if not task.done():
        return "waiting"
    return "cancelled" if task.cancelled() else task.result()


async def ran(
    steps: list[tuple[list[Operation], list[Operation]]],
    sleep: Sleep,
    read: Callable[[Callable[[], None]], None],
) -> list[list[object]]:
    """Return the states of the tasks after each step: changes in a task, then those of a read."""
    run, found = Run(sleep), list[list[object]]()
    loop = asyncio.get_running_loop()
    for changes, changes_of_read in steps:
        for each in changes:
            run.change(each)
        await settled()

        def work(operations: list[Operation] = changes_of_read) -> None:
            for each in operations:
                run.change(each)

        loop.call_soon(read, work)
        await settled()
        found.append(run.states())
    for task in run.tasks:
        task.cancel()
    await asyncio.gather(*run.tasks, return_exceptions=True)
    assert not any(signal.sleepers for signal in run.signals)
    return found


async def settled() -> None:
    for _ in range(SETTLED):
        await asyncio.sleep(0)


async def readable(steps: list[tuple[list[Operation], list[Operation]]]) -> list[list[object]]:
    return await ran(steps, lambda signal, deadline: signal.sleep(deadline), lambda work: work())


async def fast(steps: list[tuple[list[Operation], list[Operation]]]) -> list[list[object]]:
    waits = FastWaits(asyncio.get_running_loop())

    def read(work: Callable[[], None]) -> None:
        waits.begin_turn()
        work()
        waits.end_turn()

    return await ran(steps, waits.sleep, read)


@settings(max_examples=examples(200))
@given(STEPS)
def test_fast_waits_end_as_the_readable_ones(
    steps: list[tuple[list[Operation], list[Operation]]],
) -> None:
    assert asyncio.run(fast(steps)) == asyncio.run(readable(steps))

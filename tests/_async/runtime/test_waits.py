"""Waits in the event loop: signals, timers, locks, and tasks that a reader wakes."""

from __future__ import annotations

import asyncio
import math
import os
import signal
from collections.abc import Callable
from typing import NoReturn

import pytest

from js_async.runtime.concurrency import Interrupts, Signal, TimedLock
from js_async.runtime.fast import FastWaits
from tests._async.scripted import scripted
from tests.fake.stock import Stock
from twinstream.core.deadline import NEVER, Deadline, monotonic
from twinstream.errors import WrongProcessOrLoop


async def test_use_in_another_loop_is_reported_at_once() -> None:
    stock = Stock([1])
    async with scripted(stock.script) as connection:

        def elsewhere() -> None:
            asyncio.run(connection.flush())

        with pytest.raises(WrongProcessOrLoop, match="another event loop"):
            await asyncio.to_thread(elsewhere)
        await connection.flush()


async def test_one_signal_ends_all_that_wait_for_it() -> None:
    loop, own = asyncio.get_running_loop(), Signal()
    first, second = Signal(), Signal()
    loop.add_signal_handler(signal.SIGTERM, own.set)
    try:
        before = signal.getsignal(signal.SIGTERM)
        with Interrupts(first), Interrupts(second):
            os.kill(os.getpid(), signal.SIGTERM)
            for each in (first, second, own):
                assert await each.sleep(Deadline.after(30))
            # A second one is the program's own again.
            assert signal.getsignal(signal.SIGTERM) is before
            own.clear()
            os.kill(os.getpid(), signal.SIGTERM)
            assert await own.sleep(Deadline.after(30))
        assert signal.getsignal(signal.SIGTERM) is before
    finally:
        loop.remove_signal_handler(signal.SIGTERM)


async def test_one_timer_ends_each_wait_at_its_deadline() -> None:
    waits, signals = FastWaits(asyncio.get_running_loop()), [Signal() for _ in range(4)]
    now = monotonic()
    tasks = [
        asyncio.create_task(waits.sleep(each, Deadline(now + delay)))
        for each, delay in zip(signals, (0.02, 0.01, math.inf, 60), strict=True)
    ]
    await asyncio.sleep(0)
    signals[3].set()
    async with asyncio.timeout(20):
        assert [await tasks[0], await tasks[1], await tasks[3]] == [False, False, True]
    assert monotonic() >= now + 0.02
    assert not tasks[2].done()
    tasks[2].cancel()


async def test_timer_rings_again_after_a_time_without_waits() -> None:
    waits = FastWaits(asyncio.get_running_loop())
    for delay in (0.02, 0.0, 0.01):
        async with asyncio.timeout(20):
            assert not await waits.sleep(Signal(), Deadline.after(delay))


class Sleeping:
    """A sleeping task, with a record of how it was resumed."""

    def __init__(self, waits: FastWaits, after: Callable[[], object] = lambda: None) -> None:
        self.waits = waits
        self.signal = Signal()
        self.after = after
        self.seen: list[object] = []
        self.task = asyncio.create_task(self._sleep())

    async def _sleep(self) -> None:
        try:
            await self.waits.sleep(self.signal, NEVER)
        except asyncio.CancelledError as error:
            self.seen.append(error.args)
            raise
        self.seen.append(asyncio.current_task())
        self.after()


async def in_a_turn(waits: FastWaits, *woken: Sleeping, seen: list[object]) -> None:
    """Wake tasks as a reader does that the loop calls."""

    def read() -> None:
        waits.begin_turn()
        for each in woken:
            each.signal.set()
            each.signal.set()
        seen.append([each.seen for each in woken if each.seen])
        waits.end_turn()
        seen.append([each.seen for each in woken if each.seen])

    await asyncio.sleep(0)  # the tasks begin
    asyncio.get_running_loop().call_soon(read)
    await asyncio.sleep(0)


async def test_woken_task_resumes_in_the_same_loop_iteration() -> None:
    waits, seen = FastWaits(asyncio.get_running_loop()), []
    first, second = Sleeping(waits), Sleeping(waits)
    await in_a_turn(waits, first, second, seen=seen)
    # Each as itself, once all was handed out.
    assert seen == [[], [[first.task], [second.task]]]
    await asyncio.gather(first.task, second.task)


async def test_signal_set_just_before_the_task_waits_ends_the_wait() -> None:
    """A handler of a system signal may set it between any two steps."""
    signal = Signal()

    class Meanwhile:
        @property
        def at(self) -> float:
            signal.set()
            return math.inf

    waits = FastWaits(asyncio.get_running_loop())
    async with asyncio.timeout(20):
        assert await waits.sleep(signal, Meanwhile())
    assert signal.sleepers == []


async def test_task_woken_inside_another_task_resumes_after_it() -> None:
    waits = FastWaits(asyncio.get_running_loop())
    sleeping = Sleeping(waits)
    await asyncio.sleep(0)
    waits.begin_turn()
    sleeping.signal.set()
    waits.end_turn()
    assert sleeping.seen == []
    await sleeping.task
    assert sleeping.seen == [sleeping.task]


async def test_a_sleep_ends_with_the_cancellation_of_its_task() -> None:
    waits, seen = FastWaits(asyncio.get_running_loop()), []
    victim = Sleeping(waits)
    canceller = Sleeping(waits, lambda: victim.task.cancel("woken, but not yet gone on"))
    asleep = Sleeping(waits)
    await in_a_turn(waits, canceller, victim, seen=seen)
    asleep.task.cancel("asleep")
    asleep.signal.set()
    outcomes = await asyncio.gather(
        canceller.task, victim.task, asleep.task, return_exceptions=True
    )
    assert [type(each) for each in outcomes] == [
        type(None),
        asyncio.CancelledError,
        asyncio.CancelledError,
    ]
    assert victim.seen == [("woken, but not yet gone on",)]
    assert asleep.seen == [("asleep",)]


@pytest.mark.parametrize("ends", [SystemExit(3), KeyboardInterrupt()])
def test_what_ends_a_program_ends_it_out_of_a_task_that_a_reader_woke(ends) -> None:
    seen: list[object] = []

    def end() -> NoReturn:
        raise ends

    async def program() -> None:
        waits = FastWaits(asyncio.get_running_loop())
        ending, other = Sleeping(waits, end), Sleeping(waits)
        try:
            await in_a_turn(waits, ending, other, seen=[])
            await asyncio.sleep(60)
        finally:
            seen.append(other.seen == [other.task])

    with pytest.raises(type(ends)):
        asyncio.run(program())
    # The other task that was woken with it resumed first.
    assert seen == [True]


async def test_lock_passes_to_the_next_caller_if_one_is_cancelled():
    lock = TimedLock()
    assert lock.try_acquire()
    got = []

    async def take(name: str) -> None:
        held = False
        try:
            held = await lock.acquire(Deadline.after(30))
            got.append(name)
        finally:
            lock.release(held)

    tasks = [asyncio.create_task(take(name)) for name in ("waiting", "given", "last")]
    await asyncio.sleep(0)
    # One while it waits, one in the moment when it was given the lock.
    tasks[0].cancel()
    await asyncio.wait(tasks[:1])
    lock.release(True)
    tasks[1].cancel()
    await asyncio.wait(tasks)
    assert got == ["last"]
    assert lock.try_acquire()
    assert not await lock.acquire(Deadline.after(0.01))
    lock.release(False)
    assert not lock.try_acquire()

"""Signals that arrive at an inconvenient moment: before a wait, or in the middle of a step."""

from __future__ import annotations

import asyncio
import os
import signal
import subprocess
import sys
import threading
from collections.abc import Callable, Generator
from contextlib import contextmanager
from pathlib import Path
from typing import Protocol

import click
import pytest
from click.testing import CliRunner

from js_sync.runtime.concurrency import Interrupts
from js_sync.runtime.concurrency import Signal as Flag
from js_sync.runtime.handled_at_once import handled_at_once
from twinstream.cli.groups import LazyGroup
from twinstream.cli.interrupts import asked_to_stop, ended_as_by_ctrl_c
from twinstream.core.deadline import NEVER

pytestmark = pytest.mark.skipif(os.name != "posix", reason="signals of POSIX")

LIMIT = 60


class Awaited(Protocol):
    """A lock, or anything else that the main thread waits for."""

    def acquire(self, *, timeout: float) -> object: ...


@contextmanager
def received_elsewhere(number: int) -> Generator[Callable[[Awaited], None]]:
    """Yield a function that waits for a lock, while another thread receives a signal.

    This does not interrupt the wait, as if the signal had arrived immediately before it. The block
    fails if the wait continues until its limit.
    """
    waits, ended, late = threading.Event(), threading.Event(), threading.Event()

    def receive() -> None:
        waits.wait()
        signal.pthread_kill(threading.get_ident(), number)
        if not ended.wait(LIMIT):
            late.set()

    def wait_for(lock: Awaited) -> None:
        waits.set()
        lock.acquire(timeout=2 * LIMIT)

    thread = threading.Thread(target=receive)
    thread.start()
    interval = sys.getswitchinterval()
    sys.setswitchinterval(LIMIT)  # the main thread lets others run only where it waits
    try:
        yield wait_for
    finally:
        sys.setswitchinterval(interval)
        waits.set()
        ended.set()
        thread.join()
        assert not late.is_set(), "the handler ran only after the wait"


def locked() -> threading.Lock:
    lock = threading.Lock()
    lock.acquire()
    return lock


def state() -> tuple[tuple[object, ...], set[object]]:
    """What a block may change in this process, and what it may leave behind."""
    wakeup = signal.set_wakeup_fd(-1)
    signal.set_wakeup_fd(wakeup)
    handler = signal.getsignal(signal.SIGURG)
    if "py4j" in sys.modules:
        # An earlier test has started Spark, whose threads and connections come and go meanwhile.
        return (wakeup, handler), set()
    files = {each.name for each in Path("/proc/self/fd").iterdir()}
    return (wakeup, handler), {*threading.enumerate(), *files}


@pytest.fixture(autouse=True)
def unchanged() -> Generator[None]:
    """Each test leaves no thread, descriptor, handler or wake-up descriptor."""
    # Spark sets a handler of SIGINT in its process, which the blocks would call.
    others = signal.signal(signal.SIGINT, signal.default_int_handler)
    handlers, before = state()
    yield
    handlers_after, after = state()
    assert handlers_after == handlers
    # What an earlier test has left may end meanwhile.
    assert after <= before
    signal.signal(signal.SIGINT, others)


def test_ctrl_c_ends_a_wait() -> None:
    with (
        received_elsewhere(signal.SIGINT) as wait_for,
        pytest.raises(KeyboardInterrupt),
        handled_at_once(),
    ):
        wait_for(locked())


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_request_to_stop_is_handled_during_a_wait(number: int) -> None:
    handled: list[int] = []
    with handled_at_once(), asked_to_stop() as asked:
        note = signal.getsignal(number)
        assert callable(note)

        def ending(given: int, frame: object) -> None:
            note(given, None)
            handled.append(given)
            lock.release()

        lock = locked()
        signal.signal(number, ending)
        with received_elsewhere(number) as wait_for:
            wait_for(lock)
        assert asked.is_set()
    assert handled == [number]  # once


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_a_worker_is_asked_to_stop_during_a_wait(number: int) -> None:
    flag, handler = Flag(), signal.getsignal(number)

    class Waited:
        def acquire(self, *, timeout: float) -> None:
            flag.sleep(NEVER)

    with Interrupts(flag), received_elsewhere(number) as wait_for:
        wait_for(Waited())
        assert flag.is_set()
        assert signal.getsignal(number) is handler


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGHUP])
def test_signals_that_end_a_command_end_a_wait(number: int) -> None:
    with (
        received_elsewhere(number) as wait_for,
        pytest.raises(SystemExit) as end,
        handled_at_once(),
        ended_as_by_ctrl_c(),
    ):
        wait_for(locked())
    assert end.value.code == 128 + number


def test_second_ctrl_c_ends_a_wait_too() -> None:
    with handled_at_once(), asked_to_stop() as asked:
        signal.raise_signal(signal.SIGINT)
        assert asked.is_set()
        with received_elsewhere(signal.SIGINT) as wait_for, pytest.raises(KeyboardInterrupt):
            wait_for(locked())


class Waiting(LazyGroup):
    """A group whose only command waits for a lock that no thread releases."""

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command:
        def work() -> None:
            with received_elsewhere(signal.SIGINT) as wait_for:
                wait_for(locked())

        return click.Command(cmd_name, callback=work)


def test_every_command_handles_signals_at_once() -> None:
    result = CliRunner().invoke(Waiting("outer", {}, ""), ["inner"])
    assert (result.exit_code, result.stderr.strip()) == (1, "Aborted!")


def test_nested_blocks_share_one_thread() -> None:
    with handled_at_once():
        outer = state()
        with handled_at_once():
            assert state() == outer
        assert state() == outer
        with received_elsewhere(signal.SIGINT) as wait_for, pytest.raises(KeyboardInterrupt):
            wait_for(locked())


def test_another_thread_changes_nothing() -> None:
    found: list[object] = []

    def work() -> None:
        with handled_at_once():
            found.append(signal.getsignal(signal.SIGURG))

    thread = threading.Thread(target=work)
    thread.start()
    thread.join()
    assert found == [signal.SIG_DFL]


def test_event_loop_still_receives_its_signals() -> None:
    async def work() -> None:
        came = asyncio.Event()
        asyncio.get_running_loop().add_signal_handler(signal.SIGUSR1, came.set)
        with handled_at_once():
            signal.raise_signal(signal.SIGUSR1)
        await asyncio.wait_for(came.wait(), LIMIT)

    asyncio.run(work())


def test_child_processes_are_not_affected() -> None:
    program = (
        "import os, signal; print(signal.getsignal(signal.SIGURG) is signal.SIG_DFL,"
        " signal.set_wakeup_fd(-1), *sorted(os.listdir('/proc/self/fd')))"
    )
    command = [sys.executable, "-c", program]
    outside = subprocess.run(command, capture_output=True, text=True, check=True).stdout
    with handled_at_once():
        inside = subprocess.run(command, capture_output=True, text=True, check=True).stdout
    assert inside == outside
    assert inside.startswith("True -1 ")


@pytest.mark.parametrize("line", range(1, 12))
def test_request_to_stop_may_interrupt_the_wait_for_it(line: int) -> None:
    """A handler runs between any two lines of the wait: here, before the given one."""
    with asked_to_stop() as asked:
        lines = 0

        def step(frame: object, event: str, argument: object) -> object:
            nonlocal lines
            lines += event == "line"
            if lines == line:
                asked.set()
            return step

        def wait() -> None:
            sys.settrace(step)  # type: ignore[arg-type]
            asked.wait(timeout=0.01)

        thread = threading.Thread(target=wait, daemon=True)
        thread.start()
        thread.join(LIMIT)
        assert not thread.is_alive(), "the handler waits for the code that it has interrupted"
        asked.set()
        assert asked.wait()

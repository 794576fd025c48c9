"""`twinstream lock NAME -- COMMAND`: run a command while holding a lock."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Generator
from contextlib import contextmanager, suppress
from threading import Event
from typing import TYPE_CHECKING, Final, NamedTuple

import click

from twinstream.cli.failures import Failure, NotThere
from twinstream.cli.interrupts import asked_to_stop
from twinstream.cli.option_types import Seconds, WholeSeconds
from twinstream.cli.screen import alerts
from twinstream.cli.target import Target, server_options
from twinstream.core.deadline import Deadline
from twinstream.core.on_failure import OnFailure

if TYPE_CHECKING:
    from js_sync.coordination import Lease

_LOOK: Final = 0.05
# The seconds that processes may take to end after the command, while the lock is held.
_LEFTOVER: Final = 2.0
# The maximum seconds until killed processes are removed from the process group.
_REAPED: Final = 1.0


class _Running(NamedTuple):
    """The process of COMMAND, and its process group, whose number is another one."""

    process: subprocess.Popen[bytes]
    group: int


class _NotFound(Failure):
    exit_code = 127  # the exit code of a shell for a command that does not exist


class _NotRunnable(Failure):
    exit_code = 126  # the exit code of a shell for a command that cannot be run


@click.command(short_help="Run a command while holding a lock.")
@click.argument("name")
@click.argument("command", nargs=-1, required=True, type=click.UNPROCESSED)
@click.option("--stream", default="LOCKS", show_default=True, help="The stream of the locks.")
@click.option("--create", is_flag=True, help="Create the stream if it does not exist.")
@click.option(
    "--ttl",
    type=WholeSeconds(min=2),
    default="15s",
    show_default=True,
    help="Time until other clients can acquire the lock of a crashed holder.",
)
@click.option(
    "--wait",
    type=Seconds(min=0),
    metavar="DURATION",
    help="How long to wait; unlimited by default.",
)
@click.option("--note", default="", help="Shown by `lock ls`; COMMAND by default.")
@server_options
def run(
    target: Target,
    name: str,
    command: tuple[str, ...],
    stream: str,
    create: bool,
    ttl: int,
    wait: float | None,
    note: str,
) -> None:
    """Run COMMAND while holding the lock NAME, and exit with its exit code.

    The exit code is 1 when the lock could not be acquired in time or was lost, 127 when COMMAND
    does not exist, and 126 when it cannot be run. If the lock is lost, COMMAND and all processes
    that it started get SIGTERM, and SIGKILL before another client can acquire the lock. The same
    happens if a signal ends this command or COMMAND. Processes that leave the process group of
    COMMAND, and those that remain when it exits by itself, are not ended.
    COMMAND finds the fencing token in the variable TWINSTREAM_LOCK_TOKEN.

    \b
    twinstream lock nightly --wait 0 -- ./backup.sh --all
    """  # noqa: D301  # click needs the backspace character
    from js_sync.coordination import Coordination
    from twinstream.errors import StreamNotFound

    with target.connect() as nc:
        jet = target.jetstream(nc)
        locks = Coordination(jet, stream, create=create)
        lock = locks.lock(name, ttl=ttl, note=note or " ".join(command)[:100])
        try:
            lease = lock.try_acquire() if wait == 0 else lock.acquire(timeout=wait)
        except StreamNotFound as error:
            raise NotThere(f"there is no stream {stream} yet: --create creates it") from error
        if lease is None:
            raise Failure(f"the lock {name} is held: `twinstream lock ls` shows by whom")
        try:
            code = _run_command(lease, command, grace=min(1.0, ttl / 4) * 0.8)
        finally:
            lost = lease.lost
            lease.release()
    if lost is not None:
        raise Failure(f"the lock was lost, the command was ended: {lost}")
    sys.exit(code)


def _run_command(lease: Lease, command: tuple[str, ...], grace: float) -> int:
    """Run a command while the lock is held; return its exit code.

    The code is 128 and the signal's number if a signal ended the command, as in a shell.
    """
    environment = os.environ | {"TWINSTREAM_LOCK_TOKEN": str(lease.token)}
    with (
        asked_to_stop(more=_deadly()) as asked,
        _in_front() as process_group,
        _killed_with_us() as guarded,
    ):
        with _new_group() as group:
            guarded(group)
            try:
                running = _Running(
                    subprocess.Popen(command, env=environment, process_group=group), group
                )
            except OSError as error:
                failure = _NotFound if isinstance(error, FileNotFoundError) else _NotRunnable
                raise failure(f"{command[0]} cannot be started: {error.strerror}") from error
        # After a second Ctrl-C, the command must not continue without the lock.
        with OnFailure(lambda: _end(running, 0)):
            process_group(group)
            _watch(running, lease, asked, grace)
    code = running.process.returncode
    return code if code >= 0 else 128 - code


@contextmanager
def _new_group() -> Generator[int]:
    """Yield a process group, so that signals reach the command and its child processes.

    It begins with a shell that waits for the end of the block. So the group has a number before the
    command starts: from its first moment, the command is killed with this process.
    """
    with subprocess.Popen(
        ["/bin/sh", "-c", "read -r line"], stdin=subprocess.PIPE, process_group=0
    ) as first:
        yield first.pid


def _deadly() -> list[signal.Signals]:
    """Return the signals, apart from SIGINT and SIGTERM, that would end this process."""
    names = ("SIGHUP", "SIGQUIT", "SIGUSR1", "SIGUSR2", "SIGALRM", "SIGVTALRM", "SIGPROF")
    found = [
        getattr(signal, name)
        for name in (*names, "SIGXCPU", "SIGIO", "SIGPWR", "SIGSTKFLT")
        if hasattr(signal, name)
    ]
    return [number for number in found if signal.getsignal(number) is signal.SIG_DFL]


@contextmanager
def _killed_with_us() -> Generator[Callable[[int], None]]:
    """Yield a function that names a process group, which a shell kills if this process is killed.

    No handler runs for SIGKILL. The shell reads the group, and then waits for the end of a pipe,
    which only this process has open; at the end of the block it gets a line instead.
    """
    script = 'read -r group && { read -r line || kill -9 "-$group"; }'
    quiet = subprocess.DEVNULL
    with subprocess.Popen(
        ["/bin/sh", "-c", script, "twinstream-lock"],
        stdin=subprocess.PIPE,
        stdout=quiet,
        stderr=quiet,
        start_new_session=True,
        bufsize=0,
    ) as guard:
        entry = guard.stdin
        assert entry is not None

        def name(group: int) -> None:
            entry.write(b"%d\n" % group)

        try:
            yield name
        finally:
            with suppress(BrokenPipeError):
                guard.communicate(b"over\n")


def _watch(running: _Running, lease: Lease, asked: Event, grace: float) -> None:
    """Wait until the command exits. End it if the lock is lost or `asked` is set.

    It gets SIGTERM. While the lock is held, it may take any time to exit. After the lock is lost,
    it is killed unless it exits within `grace` seconds. If it did not exit by itself, the rest of
    its process group ends with it.
    """
    process = running.process
    while process.poll() is None and lease.is_held and not asked.is_set():
        _pause(process)
    if process.poll() is None:
        alerts().print("ending the command")
    elif process.returncode >= 0 and not asked.is_set():
        return
    _signal(running.group, signal.SIGTERM)
    while process.poll() is None and lease.is_held:
        _pause(process)
    patience = Deadline.after(_LEFTOVER)
    while _lives(running) and lease.is_held and not patience.expired():
        time.sleep(_LOOK)
    _end(running, grace)


def _pause(process: subprocess.Popen[bytes]) -> None:
    try:
        process.wait(_LOOK)
    except subprocess.TimeoutExpired:
        return


def _end(running: _Running, grace: float) -> None:
    """Wait until the process group has ended. After `grace` seconds, kill it.

    A killed process that no other process waits for remains in the group, so that the wait for the
    group is limited.
    """
    patience = Deadline.after(0 if running.process.returncode is not None else grace)
    while _lives(running) and not patience.expired():
        time.sleep(_LOOK)
    _signal(running.group, signal.SIGKILL)
    running.process.wait()
    patience = Deadline.after(_REAPED)
    while _lives(running) and not patience.expired():
        time.sleep(_LOOK)


def _lives(running: _Running) -> bool:
    """Return whether the process or another one of its group has not ended."""
    if running.process.poll() is None:
        return True
    with suppress(ChildProcessError):  # as the first process of a container, this one gets orphans
        while os.waitpid(-running.group, os.WNOHANG)[0]:
            pass
    return _signal(running.group, 0)


def _signal(group: int, number: int) -> bool:
    """Send a signal to a process group; return whether it had a process to receive it."""
    try:
        os.killpg(group, number)
    except (ProcessLookupError, PermissionError):
        return False
    return True


@contextmanager
def _in_front() -> Generator[_Front]:
    """Yield a function that makes a process group the foreground group of the terminal.

    Only the foreground group can read from the terminal and receives Ctrl-C. At the end of the
    block, the group of this process becomes the foreground group again. SIGTTOU is ignored within
    the block: otherwise it would stop this process when it changes the foreground group.
    """
    front = _Front(sys.stdin.fileno() if _is_terminal() else None)
    before = signal.signal(signal.SIGTTOU, signal.SIG_IGN)
    try:
        yield front
    finally:
        front(os.getpgrp())
        signal.signal(signal.SIGTTOU, before)


def _is_terminal() -> bool:
    try:
        return sys.stdin.isatty() and os.tcgetpgrp(sys.stdin.fileno()) == os.getpgrp()
    except (OSError, ValueError):
        return False


class _Front:
    """A function that makes a process group the foreground group of a terminal, if there is one."""

    def __init__(self, terminal: int | None) -> None:
        self._terminal = terminal

    def __call__(self, group: int) -> None:
        if self._terminal is not None:
            os.tcsetpgrp(self._terminal, group)

"""`twinstream lock`."""

from __future__ import annotations

import os
import signal
import subprocess
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

import pytest

import js_sync
from js_sync.coordination import Coordination
from tests.cli.output import Run, in_time, json_lines
from tests.cli.terminal import COMMAND
from tests.soak import LONGEST
from tests.unhurried import UNHURRIED
from twinstream.core.deadline import Deadline
from twinstream.testing import NatsServer

RELEASE = " ".join((*COMMAND, "lock release a --yes"))
"""A command that frees the lock `a`, for a shell."""


@pytest.fixture
def locks(server: NatsServer, stream: str) -> Iterator[Coordination]:
    with js_sync.connect(server.url, **UNHURRIED) as nc:
        found = Coordination(nc.jetstream(), f"L{stream}", create=True, owner="test")
        assert list(found.held()) == []
        yield found


def lock(server: NatsServer, *arguments: str) -> subprocess.CompletedProcess[str]:
    """Run the command in its own process, because it starts processes and receives signals."""
    command = [*COMMAND, "lock", *arguments]
    environment = os.environ | {"TWINSTREAM_URL": server.url, "NO_COLOR": "1"}
    return subprocess.run(
        command,
        capture_output=True,
        text=True,
        env=environment,
        stdin=subprocess.DEVNULL,
        timeout=LONGEST,
    )


def test_a_command_runs_under_the_lock(server: NatsServer, locks: Coordination) -> None:
    script = "echo token $TWINSTREAM_LOCK_TOKEN; exit 7"
    done = lock(server, "a", "--stream", locks.stream_name, "--", "sh", "-c", script)
    assert (done.returncode, done.stdout) == (7, "token 1\n"), done.stderr
    assert locks.lock("a").holder() is None


def test_a_lock_that_is_held_is_not_waited_for(server: NatsServer, locks: Coordination) -> None:
    with locks.lock("a", ttl=3600).acquire():
        done = lock(server, "a", "--stream", locks.stream_name, "--wait", "0", "--", "echo", "no")
        assert (done.returncode, done.stdout) == (1, "")
        assert "the lock a is held" in done.stderr
        done = lock(server, "a", "--stream", locks.stream_name, "--wait", "0.2", "--", "echo", "no")
        assert (done.returncode, done.stdout) == (1, "")
        assert "held by test" in done.stderr


def test_a_lost_lock_ends_the_command(server: NatsServer, locks: Coordination) -> None:
    # The command deletes its own lock, as another client could that considers it dead.
    release = f"{RELEASE} --stream {locks.stream_name}"
    # A release that meets a renewal is refused: the holder lives.
    script = f"until {release}; do sleep 0.1; done; sleep 3600"
    done = lock(server, "a", "--ttl", "2", "--stream", locks.stream_name, "--", "sh", "-c", script)
    assert done.returncode == 1, done.stderr
    assert "the lock was lost" in done.stderr


@contextmanager
def ending(
    server: NatsServer, locks: Coordination, script: str, ttl: int = 60
) -> Iterator[tuple[subprocess.Popen[str], int]]:
    """Return a command that runs under the lock and ignores Ctrl-C, and the process of `lock`."""
    arguments = ["a", "--stream", locks.stream_name, "--ttl", str(ttl), "--", "sh", "-c"]
    with subprocess.Popen(
        [
            *COMMAND,
            "lock",
            *arguments,
            f"trap '' TERM; {script}",
        ],
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        env=os.environ | {"TWINSTREAM_URL": server.url, "NO_COLOR": "1"},
    ) as program:
        assert program.stdout is not None
        assert program.stderr is not None
        command = int(program.stdout.readline())
        try:
            program.send_signal(signal.SIGINT)
            assert program.stderr.readline() == "ending the command\n"
            yield program, command
        finally:
            with suppress(ProcessLookupError):
                os.killpg(command, signal.SIGKILL)


def test_a_second_interrupt_kills_the_command_before_the_lock_is_free(
    server: NatsServer, locks: Coordination
) -> None:
    with ending(server, locks, "echo $$; sleep 3600") as (program, command):
        program.send_signal(signal.SIGINT)
        assert program.wait(LONGEST) == 1
        with pytest.raises(ProcessLookupError):
            os.kill(command, 0)
    assert locks.lock("a").holder() is None


def test_a_lock_that_is_lost_while_the_command_ends_ends_it_at_once(
    server: NatsServer, locks: Coordination, tmp_path: Path
) -> None:
    release = f"{RELEASE} --stream {locks.stream_name}"
    go = tmp_path / "go"
    wait = f"echo $$; until [ -e {go} ] && {release} >&2; do sleep 0.1; done; sleep 3600"
    with ending(server, locks, wait, ttl=2) as (program, command):
        go.touch()
        assert program.wait(LONGEST) == 1
        with pytest.raises(ProcessLookupError):
            os.kill(command, 0)
        assert program.stderr is not None
        assert "the lock was lost" in program.stderr.read()


STUBBORN = "sh -c \"trap '' TERM HUP INT; echo \\$\\$ \\$PPID; while :; do sleep 0.1; done\" &"
"""A child process that prints its number and that of its parent, and ignores the signals that end
programs."""


def is_over(number: int) -> bool:
    """Return whether a process has ended, even if no process has waited for it."""
    try:
        os.kill(number, 0)
        return Path(f"/proc/{number}/stat").read_text().rpartition(")")[2].split()[0] in "ZX"
    except (ProcessLookupError, FileNotFoundError):
        return True


def eventually_over(number: int) -> bool:
    deadline = Deadline.after(LONGEST)
    while not is_over(number) and not deadline.expired():
        time.sleep(0.02)
    return is_over(number)


@contextmanager
def with_a_child(
    server: NatsServer, locks: Coordination, script: str, ttl: int = 60
) -> Iterator[tuple[subprocess.Popen[str], int, int]]:
    """Yield `lock`, the number of the shell that it runs, and that of the child of the shell."""
    where = ("a", "--stream", locks.stream_name, "--ttl", str(ttl), "--")
    command = [*COMMAND, "lock", *where, "sh", "-c", STUBBORN + script]
    with subprocess.Popen(
        command,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        text=True,
        env=os.environ | {"TWINSTREAM_URL": server.url, "NO_COLOR": "1"},
    ) as program:
        assert program.stdout is not None
        child, shell = map(int, program.stdout.readline().split())
        try:
            yield program, shell, child
        finally:
            program.kill()
            with suppress(ProcessLookupError):
                os.kill(child, signal.SIGKILL)


@pytest.mark.parametrize("number", ["SIGTERM", "SIGINT", "SIGHUP", "SIGQUIT", "SIGUSR1", "SIGALRM"])
def test_a_child_that_ignores_signals_ends_before_the_lock_is_free(
    server: NatsServer, locks: Coordination, number: str
) -> None:
    with with_a_child(server, locks, "wait; wait") as (program, _, child):
        program.send_signal(getattr(signal, number))
        assert program.wait(LONGEST) == 128 + signal.SIGTERM
        assert is_over(child)
    assert locks.lock("a").holder() is None


def test_a_child_ends_with_a_command_that_a_signal_ended(
    server: NatsServer, locks: Coordination
) -> None:
    with with_a_child(server, locks, "wait") as (program, shell, child):
        os.kill(shell, signal.SIGTERM)
        assert program.wait(LONGEST) == 128 + signal.SIGTERM
        assert is_over(child)


def test_a_child_that_ignores_signals_ends_with_the_lock(
    server: NatsServer, locks: Coordination
) -> None:
    release = f"{RELEASE} --stream {locks.stream_name}"
    script = f"until {release} >&2; do sleep 0.1; done; wait"
    with with_a_child(server, locks, script, ttl=2) as (program, _, child):
        assert program.wait(LONGEST) == 1
        assert is_over(child)


def test_the_command_ends_with_a_lock_that_is_killed(
    server: NatsServer, locks: Coordination
) -> None:
    with with_a_child(server, locks, "wait") as (program, _, child):
        program.kill()
        assert eventually_over(child)


def test_what_a_command_leaves_in_the_background_may_go_on(
    server: NatsServer, locks: Coordination
) -> None:
    with with_a_child(server, locks, "exit 3") as (program, _, child):
        assert program.wait(LONGEST) == 3
        assert not is_over(child)


def test_what_is_held_is_listed_and_freed(run: Run, locks: Coordination) -> None:
    assert run("lock", "ls", "--stream", locks.stream_name).stdout == ""
    locks.lock("a", ttl=3600, note="why").acquire()
    (line,) = json_lines(run("lock", "ls", "--stream", locks.stream_name, "--json"))
    assert (line["kind"], line["name"], line["holder"], line["note"]) == (
        "lock",
        "a",
        "test",
        "why",
    )
    assert "test" in run("lock", "ls", "--stream", locks.stream_name).stdout
    refused = run("lock", "release", "a", "--stream", locks.stream_name, input="n\n")
    assert refused.exit_code == 1
    assert (
        run("lock", "release", "a", "--stream", locks.stream_name, "--yes").stdout == "a is free\n"
    )
    gone = run("lock", "release", "a", "--stream", locks.stream_name, "--yes")
    assert (gone.exit_code, "is not held" in gone.stderr) == (3, True)


def test_a_command_that_is_not_there_is_named(server: NatsServer, locks: Coordination) -> None:
    done = lock(server, "run", "a", "--stream", locks.stream_name, "--", "/no/such/thing")
    assert done.returncode == 127
    assert "/no/such/thing cannot be started" in done.stderr
    done = lock(server, "a", "--stream", locks.stream_name, "--", "/")
    assert done.returncode == 126
    assert "/ cannot be started" in done.stderr
    assert locks.lock("a").holder() is None


def test_locks_use_the_given_prefix(run: Run, locks: Coordination) -> None:
    where = ("--stream", locks.stream_name)
    assert run("lock", "ls", *where).exit_code == 0
    other = (*where, "--prefix", "NOWHERE.API", "--timeout", "1")
    for command in (("lock", "ls", *other), ("lock", "run", "a", *other, "--", "true")):
        result = in_time(
            lambda command=command: run(*command), lambda result: "NOWHERE" in result.stderr
        )
        assert result.exit_code == 1
        assert "NOWHERE.API" in result.stderr
    elsewhere = run("health", "--prefix", "NOWHERE.API", "--timeout", "1")
    assert (elsewhere.exit_code, elsewhere.stdout) == (1, "")


def test_before_the_first_lock_nothing_is_held(run: Run, server: NatsServer) -> None:
    shown = run("lock", "ls", "--stream", "NO-LOCKS")
    assert (shown.exit_code, shown.stderr) == (0, "")
    assert shown.stdout == ""
    shown = run("lock", "ls", "--stream", "NO-LOCKS", "--json")
    assert (shown.exit_code, shown.output) == (0, "")
    freed = run("lock", "release", "a", "--stream", "NO-LOCKS", "--yes")
    assert freed.exit_code == 3
    assert "the lock a is not held" in freed.stderr
    done = lock(server, "a", "--stream", "NO-LOCKS", "--", "echo", "no")
    assert (done.returncode, done.stdout) == (3, "")
    assert "--create creates it" in done.stderr

"""Standard input that does not end, and readers of standard output that exit early."""

from __future__ import annotations

import os
import signal
import subprocess
import time
from collections.abc import Generator
from contextlib import contextmanager

import pytest

import js_sync
from tests.cli.terminal import COMMAND, LIMIT
from tests.unhurried import UNHURRIED
from twinstream.testing import NatsServer


def environment(server: NatsServer) -> dict[str, str]:
    return os.environ | {"TWINSTREAM_URL": server.url, "NO_COLOR": "1"}


def filled(server: NatsServer, stream: str, count: int) -> None:
    with js_sync.connect(server.url, **UNHURRIED) as nc:
        for _ in nc.jetstream().publish_many((f"{stream}.a", b"x" * 500) for _ in range(count)):
            pass


@contextmanager
def publishing(
    server: NatsServer, stream: str, *options: str, stderr: int = subprocess.PIPE
) -> Generator[subprocess.Popen[bytes]]:
    """Run `pub` with a pipe as its standard input, which stays open."""
    command = [*COMMAND, "pub", f"{stream}.a", *options]
    with subprocess.Popen(
        command,
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=stderr,
        env=environment(server),
    ) as process:
        try:
            yield process
        finally:
            process.kill()


def await_stored(server: NatsServer, stream: str, count: int) -> None:
    deadline = time.monotonic() + LIMIT
    with js_sync.connect(server.url, **UNHURRIED) as nc:
        found = nc.jetstream().get_stream(stream)
        while found.info().state.messages < count:
            assert time.monotonic() < deadline, "the message was not stored in time"


def feed(process: subprocess.Popen[bytes], data: bytes) -> None:
    assert process.stdin is not None
    process.stdin.write(data)
    process.stdin.flush()


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_a_signal_ends_a_command_that_reads_standard_input(
    server: NatsServer, stream: str, number: signal.Signals
) -> None:
    with publishing(server, stream, "--lines") as process:
        # The beginning of a second line: it is not published as if it were complete.
        feed(process, b"one\ntw")
        await_stored(server, stream, 1)
        process.send_signal(number)
        assert process.wait(LIMIT) == 1
        assert process.stderr is not None
        assert b"interrupted after 1 messages" in process.stderr.read()
    with js_sync.connect(server.url, **UNHURRIED) as nc:
        assert nc.jetstream().get_stream(stream).info().state.messages == 1


def test_a_message_is_not_published_in_part(server: NatsServer, stream: str) -> None:
    with publishing(server, stream) as process:
        feed(process, b"the first half")
        await_connected(server, process)
        process.send_signal(signal.SIGTERM)
        assert process.wait(LIMIT) == 1
        assert process.stderr is not None
        assert b"nothing was published" in process.stderr.read()
    with js_sync.connect(server.url, **UNHURRIED) as nc:
        assert nc.jetstream().get_stream(stream).info().state.messages == 0


def await_connected(server: NatsServer, process: subprocess.Popen[bytes]) -> None:
    """Return when the command has a handler for SIGTERM."""
    deadline = time.monotonic() + LIMIT
    while not _catches(process.pid, signal.SIGTERM):
        assert time.monotonic() < deadline, "the command did not start in time"
        time.sleep(0.01)


def _catches(pid: int, number: signal.Signals) -> bool:
    with open(f"/proc/{pid}/status") as file:
        caught = next(line for line in file if line.startswith("SigCgt:"))
    return bool(int(caught.split()[1], 16) >> (number - 1) & 1)


def test_first_ctrl_c_prints_the_remaining_work_on_a_terminal(
    server: NatsServer, stream: str
) -> None:
    ours, theirs = os.openpty()
    try:
        with publishing(server, stream, "--lines", stderr=theirs) as process:
            feed(process, b"one\n")
            await_stored(server, stream, 1)
            process.send_signal(signal.SIGINT)
            assert process.wait(LIMIT) == 1
        shown = os.read(ours, 1 << 16)
        assert b"stopping: waiting for the acknowledgements of messages in flight" in shown
        assert b"Ctrl-C again aborts" in shown
    finally:
        os.close(ours)
        os.close(theirs)


@pytest.mark.parametrize("form", ["", "--json"])
@pytest.mark.parametrize("count", [3, 5000])
def test_a_reader_that_leaves_early_is_no_failure(
    server: NatsServer, stream: str, form: str, count: int
) -> None:
    filled(server, stream, count)
    get = f"{' '.join(COMMAND)} get {stream} {form}"
    script = f"{{ {get}; echo $? >&2; }} | head -n 1"
    done = subprocess.run(
        ["sh", "-c", script], capture_output=True, text=True, env=environment(server), timeout=LIMIT
    )
    assert len(done.stdout.splitlines()) == 1
    assert done.stderr.splitlines()[-1] == "0", done.stderr
    assert "error" not in done.stderr
    assert "Exception" not in done.stderr


@pytest.mark.parametrize("command", ["stream ls", "stream info {}", "consumer ls {}", "health"])
def test_a_reader_that_has_left_is_no_failure(
    server: NatsServer, stream: str, command: str
) -> None:
    reading, writing = os.pipe()
    os.close(reading)
    try:
        ended = subprocess.run(
            [*COMMAND, *command.format(stream).split()],
            stdout=writing,
            stderr=subprocess.PIPE,
            env=environment(server),
            timeout=LIMIT,
        )
    finally:
        os.close(writing)
    assert (ended.returncode, ended.stderr) == (0, b"")


def test_a_publication_that_its_reader_cuts_short_is_a_failure(
    server: NatsServer, stream: str
) -> None:
    pub = f"{' '.join(COMMAND)} pub {stream}.a x --count 200000 --json"
    script = f"{{ {pub}; echo $? >&2; }} | head -n 1"
    done = subprocess.run(
        ["sh", "-c", script], capture_output=True, text=True, env=environment(server), timeout=LIMIT
    )
    *_, said, code = done.stderr.splitlines()
    assert code == "1"
    assert "standard output was closed before all messages were published" in said

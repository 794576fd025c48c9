"""A blocking program as a process: Ctrl-C, and forks."""

from __future__ import annotations

import signal
import subprocess
import sys
from collections.abc import Iterator

import pytest

from tests.soak import LONGEST
from twinstream.core.deadline import Deadline
from twinstream.testing import FakePeer, FakeServer, NatsServer

PRELUDE = """
import os, signal, sys
import js_sync as js
from js_sync.fast_ingest import FastIngest
from twinstream.errors import WrongProcessOrLoop
from twinstream.models import ConsumerConfig, StreamConfig

# Programs in the background of a shell may be told to ignore it.
signal.signal(signal.SIGINT, signal.default_int_handler)
connection = js.connect(sys.argv[1], connect_timeout=60, request_timeout=60)
jet = connection.jetstream()
stream = jet.create_or_update_stream(StreamConfig(name="PROC", subjects=["proc.>"]))
consumer = stream.create_or_update_consumer(ConsumerConfig(durable_name="c"))
"""

WAITS = {
    "fetch": "consumer.fetch(1, timeout=3600)",
    "next": "consumer.next(timeout=3600)",
    "messages": "next(iter(consumer.messages()))",
    "subscription": "connection.subscribe('x').next()",
    "request": "kept = connection.subscribe('q'); connection.request('q', timeout=3600)",
    "ordered": "next(iter(stream.ordered()))",
    "events": "connection.events().next()",
}


@pytest.fixture
def program(server: NatsServer) -> Iterator[list[subprocess.Popen[str]]]:
    """Start programs, which end with the test."""
    running: list[subprocess.Popen[str]] = []
    yield running
    for each in running:
        if each.poll() is None:
            each.kill()
        each.communicate()


def start(text: str, url: str) -> subprocess.Popen[str]:
    command = [sys.executable, "-c", PRELUDE + text, url]
    return subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)


@pytest.mark.parametrize("what", WAITS)
def test_ctrl_c_ends_every_wait(
    server: NatsServer, program: list[subprocess.Popen[str]], what: str
) -> None:
    text = f"""
try:
    print("ready", flush=True)
    {WAITS[what]}
except KeyboardInterrupt:
    print("interrupted", connection.is_connected, flush=True)
    connection.close()
    print("closed", flush=True)
"""
    running = start(text, server.url)
    program.append(running)
    assert running.stdout is not None
    assert running.stdout.readline() == "ready\n"
    deadline = Deadline.after(LONGEST)
    while running.poll() is None and not deadline.expired():
        # The wait may not have begun yet; a second signal does no harm then.
        running.send_signal(signal.SIGINT)
        if running.stdout.readline().startswith("interrupted"):
            break
    # Not by `communicate`, which knows nothing of lines that were read ahead.
    assert running.stdout.readline() == "closed\n"
    assert running.wait(LONGEST) == 0


def test_forked_child_must_reconnect(
    server: NatsServer, program: list[subprocess.Popen[str]]
) -> None:
    text = """
child = os.fork()
if child == 0:
    codes = 0
    for use in (
        lambda: jet.publish("proc.x"),
        lambda: connection.publish("x"),
        lambda: consumer.fetch(1, timeout=1),
        lambda: connection.subscribe("x"),
    ):
        try:
            use()
        except WrongProcessOrLoop:
            codes += 1
    os._exit(codes)
_, status = os.waitpid(child, 0)
print(os.waitstatus_to_exitcode(status), jet.publish("proc.x").stream)
connection.close()
"""
    running = start(text, server.url)
    program.append(running)
    output, errors = running.communicate(timeout=LONGEST)
    assert output == "4 PROC\n", errors


DROPPED = {
    "messages": "given = consumer.messages(); given.next(timeout=60)",
    "publish_many": "given = iter(jet.publish_many([('proc.x', b'')] * 3)); next(given)",
    "publish_many, unread": "given = jet.publish_many([('proc.x', b'')])",
    "put_many": "given = iter(bucket.put_many([('a', b'')] * 3)); next(given)",
    "put_many, unread": "given = bucket.put_many([('a', b'')])",
    "fast_ingest": "given = iter(FastIngest(jet, 'FAST', [('fast', b'')] * 3)); next(given)",
    "fast_ingest, unread": "given = FastIngest(jet, 'FAST', [('fast', b'')])",
}


@pytest.mark.since("2.14")
@pytest.mark.parametrize("what", DROPPED)
def test_what_a_forked_child_drops_is_its_parents(
    server: NatsServer, program: list[subprocess.Popen[str]], what: str
) -> None:
    text = f"""
import gc, warnings
warnings.simplefilter("always")
fast = StreamConfig(name="FAST", subjects=["fast"], allow_batched=True)
jet.create_or_update_stream(fast)
jet.publish("proc.x")
bucket = jet.create_key_value(js.KeyValueConfig(bucket="forked"))
{DROPPED[what]}
child = os.fork()
if child == 0:
    given = None
    gc.collect()
    sys.stderr.flush()
    os._exit(0)
os.waitpid(child, 0)
os._exit(0)
"""
    running = start(text, server.url)
    program.append(running)
    assert running.communicate(timeout=LONGEST) == ("", "")
    assert running.returncode == 0


def test_a_forked_child_writes_nothing_into_the_link_of_its_parent() -> None:
    """With TLS, a single byte of the child would break the connection."""
    text = """
import os, sys
import js_sync as js
from twinstream.errors import WrongProcessOrLoop
connection = js.connect(sys.argv[1], connect_timeout=60, request_timeout=60)
child = os.fork()
if child == 0:
    codes = 0
    connection.close()
    connection.drain()
    for use in (connection.flush, lambda: connection.publish("x")):
        try:
            use()
        except WrongProcessOrLoop:
            codes += 1
    os._exit(codes)
_, status = os.waitpid(child, 0)
print(os.waitstatus_to_exitcode(status))
connection.publish("end")
connection.close()
"""

    def script(peer: FakePeer) -> None:
        peer.handshake()
        peer.expect("^PUB end")
        lines = [each.line for each in peer.operations]
        # The one that logs in.
        assert lines[: lines.index("PUB end 0")].count("PING") == 1
        peer.until_left()

    with FakeServer(script, patience=LONGEST) as server:
        command = [sys.executable, "-c", text, server.url]
        ended = subprocess.run(
            command, capture_output=True, text=True, timeout=LONGEST, check=False
        )
        assert ended.stdout == "2\n", ended.stderr


OUT_OF_FILES = """
import asyncio, os, resource, sys
import js_async, js_sync
js_sync.ConnectionFailed
soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
def use_up():
    resource.setrlimit(resource.RLIMIT_NOFILE, (64, hard))
    held = []
    try:
        while True:
            held.append(os.open(os.devnull, os.O_RDONLY))
    except OSError:
        return held
async def connect():
    await (await js_async.connect(sys.argv[2], connect_timeout=60)).close()
    held = use_up()
    return await js_async.connect(sys.argv[2], connect_timeout=60)
try:
    if sys.argv[1] == "js_async":
        asyncio.run(connect())
    else:
        js_sync.connect(sys.argv[2], connect_timeout=60).close()
        held = use_up()
        js_sync.connect(sys.argv[2], connect_timeout=60)
except js_sync.ConnectionFailed as error:
    resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))
    print(error)
"""


@pytest.mark.parametrize("twin", ["js_async", "js_sync"])
def test_process_out_of_file_descriptors_cannot_connect_and_says_why(
    server: NatsServer, twin: str
) -> None:
    command = [sys.executable, "-c", OUT_OF_FILES, twin, server.url]
    done = subprocess.run(command, capture_output=True, text=True, timeout=LONGEST, check=False)
    assert "Too many open files" in done.stdout, done.stderr

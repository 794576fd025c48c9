"""Standard error of a program that does not configure logging."""

from __future__ import annotations

import subprocess
import sys

import pytest

import js_sync
from tests.soak import LONGEST
from tests.unhurried import UNHURRIED
from twinstream.models import ConsumerConfig, StreamConfig
from twinstream.testing import NatsServer

BLOCKING = """
import sys, time
import js_sync
from js_sync.workers import Retry, Worker

def handler(message):
    return message.data + 1

with js_sync.connect(sys.argv[1], connect_timeout=60, request_timeout=60) as nc:
    retry = Retry(attempts=2, first=0.01)
    worker = Worker(nc.jetstream(), sys.argv[2], "w", handler, retry=retry)
    with worker:
        while worker.rejected < 2:
            time.sleep(0.01)
"""

LOOPING = """
import asyncio, sys
import js_async
from js_async.workers import Retry, Worker

async def handler(message):
    return message.data + 1

async def main():
    async with js_async.connect(sys.argv[1], connect_timeout=60, request_timeout=60) as nc:
        retry = Retry(attempts=2, first=0.01)
        worker = Worker(nc.jetstream(), sys.argv[2], "w", handler, retry=retry)
        async with worker:
            while worker.rejected < 2:
                await asyncio.sleep(0.01)

asyncio.run(main())
"""


@pytest.mark.parametrize("program", [BLOCKING, LOOPING], ids=["blocking", "looping"])
def test_a_failing_handler_is_seen_without_any_setting(
    server: NatsServer, program: str, request: pytest.FixtureRequest
) -> None:
    name = f"OUT{request.node.callspec.id}"
    with js_sync.connect(server.url, **UNHURRIED) as nc:
        jet = nc.jetstream(timeout=60)
        stream = jet.create_stream(StreamConfig(name=name, retention="workqueue"))
        stream.create_consumer(ConsumerConfig(durable_name="w"))
        for _ in range(2):
            jet.publish(name, b"secret")
    command = [sys.executable, "-c", program, server.url, name]
    done = subprocess.run(command, capture_output=True, text=True, check=True, timeout=LONGEST)
    lines = done.stderr.splitlines()
    # The first failure, then one line for each message that is given up, one of them with its
    # traceback.
    assert lines[0].startswith(f"{name}/w: message 1 ({name}) failed at attempt 1")
    given_up = [line for line in lines if "is given up after attempt 2: TypeError(" in line]
    assert len(given_up) == 2
    assert lines.count("Traceback (most recent call last):") == 1
    assert "in handler" in done.stderr
    assert "secret" not in done.stderr


def test_a_program_without_trouble_prints_nothing(server: NatsServer) -> None:
    program = "import sys, js_sync\nwith js_sync.connect(sys.argv[1], connect_timeout=60): pass"
    command = [sys.executable, "-X", "dev", "-c", program, server.url]
    done = subprocess.run(command, capture_output=True, text=True, check=True, timeout=LONGEST)
    assert (done.stdout, done.stderr) == ("", "")

"""Workers as programs: ended by a signal with a clean shutdown, or killed."""

from __future__ import annotations

import random
import signal
import subprocess
import sys
from collections import Counter
from collections.abc import Callable, Generator
from contextlib import contextmanager
from datetime import timedelta

import pytest

import js_sync
from tests.soak import LONGEST, rounds, state
from tests.unhurried import UNHURRIED
from twinstream.core.deadline import Deadline
from twinstream.models import ConsumerConfig, StreamConfig
from twinstream.testing import NatsServer

BLOCKING = """
import os, sys, time
import js_sync
from js_sync.workers import Worker

def handler(message):
    os.write(1, b"%d\\n" % message.metadata.stream_seq)
    time.sleep(0.02)

with js_sync.connect(sys.argv[1], connect_timeout=60, request_timeout=60) as nc:
    worker = Worker(nc.jetstream(), "S", "w", handler, concurrency=3, order=sys.argv[2])
    worker.run()
print("ended after", worker.handled)
"""

LOOPING = """
import asyncio, os, sys
import js_async
from js_async.workers import Worker

async def handler(message):
    os.write(1, b"%d\\n" % message.metadata.stream_seq)
    await asyncio.sleep(0.02)

async def main():
    async with js_async.connect(sys.argv[1], connect_timeout=60, request_timeout=60) as nc:
        worker = Worker(nc.jetstream(), "S", "w", handler, concurrency=3, order=sys.argv[2])
        await worker.run()
    print("ended after", worker.handled)

asyncio.run(main())
"""
FAST = timedelta(seconds=1)
TWINS = pytest.mark.parametrize("program", [BLOCKING, LOOPING], ids=["blocking", "looping"])


@contextmanager
def running(program: str, server: NatsServer, order: str) -> Generator[subprocess.Popen[str]]:
    """Run a worker, and kill it at the end if it is still running."""
    command = [sys.executable, "-c", program, server.url, order]
    pipe = subprocess.PIPE
    with subprocess.Popen(command, stdout=pipe, stderr=pipe, text=True) as worker:
        try:
            yield worker
        finally:
            worker.kill()


def first(worker: subprocess.Popen[str], count: int) -> list[int]:
    """Return the first messages that a worker handled."""
    assert worker.stdout is not None
    return [int(worker.stdout.readline()) for _ in range(count)]


def rest(worker: subprocess.Popen[str]) -> list[str]:
    """Return the remaining output of a worker, after it has ended."""
    assert worker.stdout is not None
    return worker.stdout.read().splitlines()


def filled(jet: js_sync.JetStream, count: int) -> js_sync.Consumer:
    stream = jet.create_stream(StreamConfig(name="S", subjects=["s.>"]))
    for number in range(count):
        jet.publish(f"s.{number % 7}", b"x")
    return stream.create_consumer(ConsumerConfig(durable_name="w"))


@TWINS
@pytest.mark.parametrize("order", ["none", "subject"])
@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_a_signal_ends_a_worker_in_good_order(
    server_factory: Callable[[], NatsServer], program: str, order: str, number: signal.Signals
) -> None:
    with server_factory() as server, js_sync.connect(server.url, **UNHURRIED) as nc:
        consumer = filled(nc.jetstream(), 400)
        with running(program, server, order) as worker:
            seen = first(worker, 10)
            worker.send_signal(number)
            *more, last = rest(worker)
            assert worker.wait(LONGEST) == 0
            assert worker.stderr is not None
            assert worker.stderr.read() == ""
        seen += map(int, more)
        assert last == f"ended after {len(seen)}"
        assert 10 <= len(seen) < 400
        # All that was handled is acknowledged, all else is there for somebody else at once.
        again = [
            message.metadata.stream_seq for message in consumer.fetch(400 - len(seen), timeout=60)
        ]
        assert Counter(seen + again) == Counter(range(1, 401))


OWN_HANDLER = """
import os, signal
signal.signal(signal.SIGTERM, lambda *_: os.write(1, b"own handler\\n"))
"""
OWN_EXIT = """
import signal
def leave(*_):
    sys.exit(5)
signal.signal(signal.SIGTERM, leave)
"""


@TWINS
def test_a_signal_handler_of_the_program_is_called(
    server_factory: Callable[[], NatsServer], program: str
) -> None:
    with server_factory() as server, js_sync.connect(server.url, **UNHURRIED) as nc:
        filled(nc.jetstream(), 400)
        with running(OWN_HANDLER + program, server, "none") as worker:
            seen = first(worker, 10)
            worker.send_signal(signal.SIGTERM)
            *more, last = rest(worker)
            assert worker.wait(LONGEST) == 0
        assert more.count("own handler") == 1, more
        assert last == f"ended after {len(seen) + len(more) - 1}"


@TWINS
def test_a_signal_handler_of_the_program_may_end_it(
    server_factory: Callable[[], NatsServer], program: str
) -> None:
    with server_factory() as server, js_sync.connect(server.url, **UNHURRIED) as nc:
        consumer = filled(nc.jetstream(), 400)
        with running(program.replace("\n\n", "\n" + OWN_EXIT + "\n", 1), server, "none") as worker:
            seen = first(worker, 10)
            worker.send_signal(signal.SIGTERM)
            seen += map(int, rest(worker))
            assert worker.stderr is not None
            assert worker.wait(LONGEST) == 5, worker.stderr.read()
        again = consumer.fetch(400 - len(seen), timeout=60)
        assert len(again) == 400 - len(seen)


@TWINS
def test_soak_a_killed_worker_loses_nothing(
    server_factory: Callable[[], NatsServer], program: str
) -> None:
    # A pause of the machine that is longer than ack_wait makes more come again, but not each time.
    found = (killed_workers(server_factory, program) for _ in range(3))
    # What was begun, and acknowledged on the way, comes again; not all that was worked on.
    assert any(again <= 20 * kills for kills, again in found)


def killed_workers(server_factory: Callable[[], NatsServer], program: str) -> tuple[int, int]:
    """Kill workers, and handle the rest; return the number of kills, and what came again."""
    kills = rounds(2, 60)
    chance = random.Random(5)
    with server_factory() as server, js_sync.connect(server.url, **UNHURRIED) as nc:
        jet = nc.jetstream()
        count = 100 * kills
        filled(jet, count)
        consumer = jet.update_consumer("S", ConsumerConfig(durable_name="w", ack_wait=FAST))
        seen: list[int] = []
        for _ in range(kills):
            with running(program, server, "none") as worker:
                seen += first(worker, chance.randrange(5, 60))
                worker.kill()
                seen += [int(line) for line in rest(worker)]
        killed = len(seen)
        patience = Deadline.after(LONGEST)
        while len(set(seen)) < count and not patience.expired():
            for message in consumer.fetch(100, timeout=1):
                message.ack()
                seen.append(message.metadata.stream_seq)
        again = len(seen) - count
        state(f"workers: {kills} kills, {count} messages, {killed} by the killed, {again} again")
        assert set(seen) == set(range(1, count + 1))
    return kills, again

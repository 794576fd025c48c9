"""`kill -9` at any moment, of the program and of the server: one copy each, none lost."""

from __future__ import annotations

import os
import random
import signal
import sqlite3
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Callable
from contextlib import closing
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest

import js_sync as js
from js_sync.outbox import SqliteOutbox
from tests.soak import LONG, LONGEST, rounds, state
from tests.unhurried import UNHURRIED
from twinstream.models import ConsumerConfig, StreamConfig
from twinstream.testing import NatsServer

WORKER = Path(__file__).with_name("worker.py")
TWINS = ("js_sync", "js_async")
# Every so many lives the server is killed too.
SERVER_DIES = 5
# By subject nothing may depend on the window: as short as the server takes it.
WINDOWS = {"subject": timedelta(seconds=0.1), "id": timedelta(minutes=2)}
PATIENT = js.ReconnectPolicy(wait=0.01, max_wait=0.1, attempts=-1)


class Worker:
    """One life of the worker process."""

    def __init__(self, *arguments: str, log: Path) -> None:
        self._log = log
        with log.open("ab") as file:
            self.process = subprocess.Popen(
                [sys.executable, str(WORKER), *arguments], stdout=subprocess.PIPE, stderr=file
            )

    def ready(self) -> None:
        assert self.process.stdout is not None
        line = self.process.stdout.readline()
        assert line == b"ready\n", self._log.read_text()

    def kill(self) -> None:
        os.kill(self.process.pid, signal.SIGKILL)
        self.end()

    def end(self) -> int:
        assert self.process.stdout is not None
        code = self.process.wait(LONGEST)
        self.process.stdout.close()
        return code


def trouble(
    server: NatsServer, work: str, by: str, path: str, log: Path, more: Callable[[], None]
) -> tuple[int, int]:
    """Kill workers, and now and then the server, while there is more and more to do."""
    chance = random.Random(f"{work}{by}")
    kills, servers = rounds(2, 250), 0
    for life in range(kills):
        arguments = (TWINS[life % 2], work, by, server.url, "IN", path)
        worker = Worker(*arguments, log=log)
        try:
            # Some die while they start.
            if chance.random() < 0.9:
                worker.ready()
            more()
            if life % SERVER_DIES == 1:
                server.kill()
                servers += 1
                time.sleep(chance.random() * 0.05)
                server.restart()
            time.sleep(chance.random() * 0.1)
        finally:
            worker.kill()
    code = Worker("js_sync", work, by, server.url, "IN", path, "finish", log=log).end()
    assert code == 0, log.read_text()
    return kills, servers


def held(stream: Any) -> tuple[Counter[str], list[str]]:
    counts: Counter[str] = Counter()
    order: list[str] = []
    last = stream.info().state.last_seq
    if last:
        with stream.ordered(headers_only=True) as messages:
            for message in messages:
                counts[message.headers["Nats-Msg-Id"]] += 1
                order.append(message.headers["Nats-Msg-Id"])
                if message.metadata.stream_seq == last:
                    break
    return counts, order


def check(what: str, wanted: int, counts: Counter[str], deaths: tuple[int, int]) -> None:
    twice = sum(number > 1 for number in counts.values())
    state(
        f"{what}: {deaths[0]} kills, {deaths[1]} of the server, {wanted} wanted,"
        f" {wanted - len(counts)} lost, {twice} twice"
    )
    assert (len(counts), twice) == (wanted, 0)


@pytest.mark.parametrize("by", ["subject", "id"])
def test_an_outbox_through_kills(
    server_factory: Callable[..., NatsServer], tmp_path: Path, by: str
) -> None:
    path, ids = str(tmp_path / "app.db"), []
    server = server_factory()
    outbox = SqliteOutbox(path)
    with js.connect(server.url, reconnect=PATIENT, **UNHURRIED) as connection:
        jet = connection.jetstream(timeout=60)
        config = StreamConfig(name="IN", subjects=["in.>"], duplicate_window=WINDOWS[by])
        stream = jet.create_stream(config)
        with closing(sqlite3.connect(path, timeout=60)) as db:
            outbox.create(db)

            def more() -> None:
                for _ in range(10):
                    with db:
                        ids.append(outbox.add(db, "in.{id}", b"x" * 100, key="a").id)
                        outbox.add(db, "in.free.{id}", b"y")

            deaths = trouble(server, "outbox", by, path, tmp_path / "worker.log", more)
        counts, order = held(stream)
        check(f"outbox by {by}", 2 * len(ids), counts, deaths)
        assert [id for id in order if id in set(ids)] == ids
        assert outbox.waiting() == 0


@pytest.mark.parametrize("by", ["subject", "id"])
def test_processing_through_kills(
    server_factory: Callable[..., NatsServer], tmp_path: Path, by: str
) -> None:
    server = server_factory()
    with js.connect(server.url, reconnect=PATIENT, **UNHURRIED) as connection:
        jet = connection.jetstream(timeout=60)
        stream = jet.create_stream(StreamConfig(name="IN", subjects=["in.*"]))
        results = jet.create_stream(
            StreamConfig(name="IN-OUT", subjects=["in-out.>"], duplicate_window=WINDOWS[by])
        )
        wait = timedelta(seconds=3 if LONG else 1)
        stream.create_consumer(
            ConsumerConfig(durable_name="w", ack_policy="explicit", ack_wait=wait)
        )
        sent = 0

        def more() -> None:
            nonlocal sent
            for _ in range(20):
                jet.publish("in.a", b"x", msg_id=str(sent))
                sent += 1

        deaths = trouble(server, "process", by, "-", tmp_path / "worker.log", more)
        counts, _ = held(results)
        check(f"processing by {by}", 2 * sent, counts, deaths)

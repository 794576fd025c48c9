"""`kill -9` of members of a consumer group: each key stays in order, no message is lost."""

from __future__ import annotations

import os
import random
import signal
import subprocess
import sys
import time
from collections import defaultdict
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

import js_sync as js
from js_sync.groups import ElasticGroup
from tests.soak import LONGEST, rounds, state
from tests.unhurried import UNHURRIED
from twinstream.models import ElasticGroupConfig, PartitioningFilter, StreamConfig
from twinstream.testing import NatsServer

MEMBER = Path(__file__).with_name("member.py")
TWINS = ("js_sync", "js_async")
# One member with a standby instance.
INSTANCES = ("m1", "m1", "m2", "m3")
KEYS = 23
COUNT = rounds(150, 10_000)
KILLS = rounds(2, 40)


class Instance:
    """One process that works as a member; started again after it was killed."""

    def __init__(self, number: int, url: str, most: int, log: Path) -> None:
        self._arguments = (url, "g", INSTANCES[number], str(most))
        self._lives = number
        self._log = log
        self.start()

    def start(self) -> None:
        twin = TWINS[self._lives % 2]
        self._lives += 1
        with self._log.open("ab") as file:
            self.process = subprocess.Popen(
                [sys.executable, str(MEMBER), twin, *self._arguments],
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=file,
            )

    def ready(self) -> None:
        assert self.process.stdout is not None
        assert self.process.stdout.readline() == b"ready\n", self._log.read_text()

    def kill(self) -> None:
        os.kill(self.process.pid, signal.SIGKILL)
        self._end()

    def stop(self) -> None:
        assert self.process.stdin is not None
        self.process.stdin.close()
        code = self._end()
        assert code == 0, self._log.read_text()

    def _end(self) -> int:
        for pipe in (self.process.stdin, self.process.stdout):
            if pipe is not None and not pipe.closed and pipe is not self.process.stdout:
                pipe.close()
        code = self.process.wait(LONGEST)
        assert self.process.stdout is not None
        self.process.stdout.close()
        return code


@contextmanager
def instances(url: str, most: int, log: Path) -> Iterator[list[Instance]]:
    """Run all instances; those that still run at the end are killed."""
    made = [Instance(number, url, most, log) for number in range(len(INSTANCES))]
    try:
        for each in made:
            each.ready()
        yield made
    finally:
        for each in made:
            if each.process.poll() is None:
                each.kill()


def worked_on(stream: Any) -> dict[str, list[int]]:
    """Return what was worked on, by key, in order."""
    found: dict[str, list[int]] = defaultdict(list)
    last = stream.info().state.last_seq
    if last:
        with stream.read() as messages:
            for message in messages:
                found[message.subject].append(int(message.data))
    return found


def wait_for(stream: Any, count: int) -> None:
    deadline = time.monotonic() + LONGEST
    while len({number for each in worked_on(stream).values() for number in each}) < count:
        assert time.monotonic() < deadline, "messages are missing"
        time.sleep(0.2)


@pytest.mark.parametrize("most", [1, 100])
def test_members_through_kills(
    server_factory: Callable[..., NatsServer], tmp_path: Path, most: int
) -> None:
    chance, log = random.Random(most), tmp_path / "members.log"
    server = server_factory()
    with js.connect(server.url, **UNHURRIED) as connection:
        jet = connection.jetstream(timeout=60)
        jet.create_stream(StreamConfig(name="IN", subjects=["in.*"]))
        out = jet.create_stream(StreamConfig(name="OUT", subjects=["out.*"], allow_direct=True))
        group = ElasticGroup(jet, "IN", "g")
        by_key = PartitioningFilter(filter="in.*", partitioning_wildcards=[1])
        group.create(
            ElasticGroupConfig(
                max_members=10, partitioning_filters=[by_key], members=["m1", "m2", "m3"]
            )
        )
        with instances(server.url, most, log) as made:
            for life in range(KILLS):
                begin, end = COUNT * life // KILLS, COUNT * (life + 1) // KILLS
                for number in range(begin, end):
                    jet.publish(f"in.k{number % KEYS}", b"%d" % number)
                victim = chance.choice(made)
                time.sleep(chance.random() * 0.2)
                victim.kill()
                if life % 3 == 1:
                    # The members change while one of them is dead.
                    group.remove_members("m2")
                    group.add_members("m2")
                victim.start()
                victim.ready()
            wait_for(out, COUNT)
            for each in made:
                each.stop()
        found = worked_on(out)
    again = sum(map(len, found.values())) - COUNT
    wrong = {key: numbers for key, numbers in found.items() if numbers != sorted(numbers)}
    state(f"members, {most} at once: {COUNT} messages, {KILLS} kills, {again} worked on again")
    # Each acknowledgement is confirmed: a message may come again, an earlier one may not.
    assert not wrong

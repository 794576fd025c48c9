"""Dead letters from processes that are killed at random; short here, long with `make soak`."""

from __future__ import annotations

import random
import subprocess
import sys
from collections import Counter
from collections.abc import Callable
from datetime import timedelta

import js_sync
from js_sync.workers import DeadLetters
from tests.soak import LONGEST, rounds, state
from tests.unhurried import UNHURRIED
from twinstream.core.deadline import Deadline
from twinstream.core.workers.dead_letter import Names
from twinstream.models import ConsumerConfig, StreamConfig
from twinstream.testing import NatsServer

VICTIM = """
import sys
import js_sync
from js_sync.workers import DeadLetters
with js_sync.connect(sys.argv[1], connect_timeout=60, request_timeout=60) as nc:
    dead = DeadLetters(nc.jetstream(timeout=60), "S")
    print("here", flush=True)
    while True:
        dead.collect(idle_timeout=0.5)
"""


def test_soak_each_failure_is_kept_once_whoever_is_killed(
    server_factory: Callable[[], NatsServer],
) -> None:
    kills = rounds(4, 150)
    chance = random.Random(7)
    with server_factory() as server, js_sync.connect(server.url, **UNHURRIED) as nc:
        jet = nc.jetstream(timeout=60)
        stream = jet.create_stream(StreamConfig(name="S", subjects=["s.>"]))
        worker = stream.create_consumer(ConsumerConfig(durable_name="w", max_ack_pending=-1))
        dead = DeadLetters(jet, "S")
        dead.create()
        keeper = Names.of("S", None, None, None, None).keeper_config()
        assert keeper.ack_wait is None
        count = 0
        for _ in range(kills):
            victim = subprocess.Popen(
                [sys.executable, "-c", VICTIM, server.url], stdout=subprocess.PIPE
            )
            try:
                assert victim.stdout is not None
                assert victim.stdout.readline() == b"here\n"
                for _ in range(20):
                    jet.publish(f"s.{count}", b"%d" % count)
                    count += 1
                for message in worker.fetch(20, timeout=60):
                    message.term("bad")
                nc.flush()
                wait(chance.random() * 0.05)
            finally:
                victim.kill()
                victim.communicate()
        # What the killed ones had taken comes again after the ack_wait of its consumer.
        patience = Deadline.after(LONGEST)
        failures = jet.get_stream("S-failures")
        while failures.info().state.messages and not patience.expired():
            dead.collect(idle_timeout=1)
        seqs = Counter(letter.stream_seq for letter in dead.letters())
        state(
            f"dead letters: {kills} kills, {count} failures, {len(seqs)} kept,"
            f" {sum(seqs.values()) - len(seqs)} twice, {dead.known} found stored already"
        )
        assert seqs == Counter(range(1, count + 1))
        assert all(int(letter.data) == letter.stream_seq - 1 for letter in dead.letters())


def wait(delay: float) -> None:
    """Let the process work for a moment."""
    deadline = Deadline.after(timedelta(seconds=delay))
    while not deadline.expired():
        pass

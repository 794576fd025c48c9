"""The program `examples/worker.py`: it works until it is stopped, and loses no order."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from collections.abc import Callable, Generator, Mapping
from contextlib import contextmanager
from pathlib import Path

import js_sync
from js_sync.workers import DeadLetters
from tests._sync.flow import eventually
from tests.examples import ROOT
from tests.soak import LONGEST
from tests.unhurried import UNHURRIED
from twinstream.testing import NatsServer

WORKER = ROOT / "examples" / "worker.py"


@contextmanager
def working(
    program: Path, server: NatsServer, environment: Mapping[str, str] = os.environ
) -> Generator[subprocess.Popen[str]]:
    """Run a worker until the end of the block, or until the caller stops it."""
    command = [sys.executable, str(program), server.url]
    pipe = subprocess.PIPE
    with subprocess.Popen(
        command, stdout=pipe, stderr=pipe, text=True, env=dict(environment)
    ) as process:
        try:
            yield process
        finally:
            process.kill()


def send(jet: js_sync.JetStream, *orders: object) -> None:
    """Publish orders; bytes are published as they are."""
    for number, order in enumerate(orders):
        data = order if isinstance(order, bytes) else json.dumps(order).encode()
        jet.publish(f"orders.{number}", data)


def stopped(process: subprocess.Popen[str]) -> list[str]:
    """Stop a worker by a signal, and return the rest of its output."""
    process.send_signal(signal.SIGTERM)
    output, errors = process.communicate(timeout=LONGEST)
    assert process.returncode == 0, errors
    return output.splitlines()


def test_orders_are_packed_or_become_dead_letters_until_a_signal(
    server_factory: Callable[[], NatsServer],
) -> None:
    with server_factory() as server, js_sync.connect(server.url, **UNHURRIED) as nc:
        jet = nc.jetstream(timeout=30)
        jet.create_stream(js_sync.StreamConfig(name="ORDERS", subjects=["orders.>"]))
        wrong = {"number": 3, "item": "oil", "count": 0}
        good = {"number": 1, "item": "tea"}, {"number": 4, "item": "milk", "count": 2}
        with working(WORKER, server) as process:
            assert process.stdout is not None
            send(jet, good[0], b'{"number": "two"}', wrong, b"\xff", good[1])
            packed = {process.stdout.readline() for _ in good}
            assert packed == {"packed 1 x tea\n", "packed 2 x milk\n"}
            consumer = jet.bind_consumer("ORDERS", "packer")
            stream = jet.bind_stream("PARCELS")
            letters = DeadLetters(jet, "ORDERS")
            eventually(lambda: len(list(letters.letters())) == 3, patience=LONGEST)
            assert stopped(process) == ["2 packed, 3 given up"]
        info = consumer.info()
        assert (info.num_pending, info.num_ack_pending) == (0, 0)
        parcels = [json.loads(each.data) for each in stream.read(end=3)]
        assert sorted(parcels, key=lambda each: int(each["order"])) == [
            {"order": 1, "label": "1 x tea"},
            {"order": 4, "label": "2 x milk"},
        ]
        reasons = {each.subject: each.reason for each in letters.letters()}
        assert "the payload does not fit Order at $.number" in reasons["orders.1"]
        assert reasons["orders.2"] == "order 3 has no items"
        assert "the payload does not fit Order" in reasons["orders.3"]

        # It starts again beside its streams, and goes on.
        with working(WORKER, server) as process:
            assert process.stdout is not None
            send(jet, {"number": 5, "item": "salt"})
            assert process.stdout.readline() == "packed 1 x salt\n"
            assert stopped(process) == ["1 packed, 0 given up"]

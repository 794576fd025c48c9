"""Step 3: both twins work on one durable consumer at once, until each event is settled.

The two workers are the same program twice: one in a thread on ``js_sync``, one in an event loop
(in another thread) on ``js_async``. The server deals the messages out among them.
"""

from __future__ import annotations

import asyncio
import threading
import time
from collections.abc import Callable

import js_async
import js_sync
from js_cli.demo.handler import Verdict, handle
from js_cli.demo.ledger import Ledger
from js_cli.demo.scene import CONSUMER, STREAM, Scene
from js_cli.screen import progress, remark

BUFFER = 200
"""Messages that a worker asks for ahead: few enough that both get their share."""
_TURN = 0.1
_RETRY_DELAY = 0.05
_PATIENCE = 120.0
_SETTLING = 5.0


def consume(scene: Scene, jet: js_sync.JetStream) -> None:
    """Run both workers until every event is settled; fails after two minutes without an end."""
    consumer = jet.get_stream(STREAM).get_consumer(CONSUMER)
    assert scene.consumer_config is not None, "the consumer has not been created"
    ledger = Ledger(scene.stored, max_deliver=scene.consumer_config.max_deliver or 1)
    scene.ledger = ledger
    started = time.monotonic()
    workers = [
        _Worker("js_sync", lambda: work_blocking(scene.url, ledger), ledger),
        _Worker("js_async", lambda: asyncio.run(work_in_loop(scene.url, ledger)), ledger),
    ]
    for worker in workers:
        worker.start()
    _show_progress(scene, ledger, workers)
    ledger.complete.set()
    for worker in workers:
        worker.join()
    scene.consume_seconds = time.monotonic() - started
    for worker in workers:
        if worker.error is not None:
            raise worker.error
    scene.left_on_server = _left(consumer)
    remark(scene.console, _told(ledger))


def work_blocking(url: str, ledger: Ledger) -> None:
    """Settle messages with the blocking twin until the ledger is complete."""
    with js_sync.connect(url, name="demo js_sync") as nc:
        consumer = nc.jetstream().get_stream(STREAM).get_consumer(CONSUMER)
        with consumer.messages(max_messages=BUFFER) as messages:
            while not ledger.complete.is_set():
                try:
                    message = messages.next(_TURN)
                except js_sync.RequestTimeout:
                    continue
                about = message.metadata
                verdict = handle(message.data, about.num_delivered)
                match verdict:
                    case Verdict.DONE:
                        message.ack()
                    case Verdict.AGAIN:
                        message.nak(delay=_RETRY_DELAY)
                    case Verdict.NEVER:
                        message.term("not JSON")
                ledger.record("js_sync", about.stream_seq, about.num_delivered, verdict)


async def work_in_loop(url: str, ledger: Ledger) -> None:
    """Settle messages with the asyncio twin until the ledger is complete."""
    async with js_async.connect(url, name="demo js_async") as nc:
        stream = await nc.jetstream().get_stream(STREAM)
        consumer = await stream.get_consumer(CONSUMER)
        async with consumer.messages(max_messages=BUFFER) as messages:
            while not ledger.complete.is_set():
                try:
                    message = await messages.next(_TURN)
                except js_async.RequestTimeout:
                    continue
                about = message.metadata
                verdict = handle(message.data, about.num_delivered)
                match verdict:
                    case Verdict.DONE:
                        await message.ack()
                    case Verdict.AGAIN:
                        await message.nak(delay=_RETRY_DELAY)
                    case Verdict.NEVER:
                        await message.term("not JSON")
                ledger.record("js_async", about.stream_seq, about.num_delivered, verdict)


def _left(consumer: js_sync.Consumer) -> int:
    """Return what the server still waits for; it handles the last words in its own time."""
    deadline = time.monotonic() + _SETTLING
    while True:
        state = consumer.info()
        left = (state.num_pending or 0) + (state.num_ack_pending or 0)
        if not left or time.monotonic() > deadline:
            return left
        time.sleep(0.05)


class _Worker(threading.Thread):
    """A thread that keeps the error it ended with."""

    def __init__(self, name: str, work: Callable[[], None], ledger: Ledger) -> None:
        super().__init__(name=name, daemon=True)
        self.error: BaseException | None = None
        self._work = work
        self._ledger = ledger

    def run(self) -> None:
        try:
            self._work()
        except BaseException as error:
            self.error = error
            self._ledger.complete.set()  # the other one need not go on


def _show_progress(scene: Scene, ledger: Ledger, workers: list[_Worker]) -> None:
    deadline = time.monotonic() + _PATIENCE
    with progress(scene.console) as display:
        task = display.add_task("settle", total=ledger.expected)
        while not ledger.complete.wait(0.05) and time.monotonic() < deadline:
            display.update(task, completed=ledger.settled)
        display.update(task, completed=ledger.settled)


def _told(ledger: Ledger) -> str:
    shares = " and ".join(f"{count:,} by {name}" for name, count in ledger.deliveries.items())
    return (
        f"{sum(ledger.deliveries.values()):,} deliveries: {shares}."
        f" {len(ledger.acknowledged):,} messages acknowledged, {len(ledger.terminated)} terminated"
        f" (no JSON), {len(ledger.exhausted)} given up after {ledger.max_deliver} deliveries."
    )

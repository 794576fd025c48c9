"""Step 3: `js_sync` and `js_async` consume from one consumer until all events are settled."""

from __future__ import annotations

import time
from typing import Final

from examples.demo.ledger import Ledger
from examples.demo.scene import CONSUMER, STREAM, Scene
from examples.demo.workers import Crew
from js_sync import Consumer, JetStream
from twinstream.cli.screen import progress, remark

_PATIENCE: Final = 120.0
"""The maximum seconds to settle all messages. Step 6 reports messages that are still missing."""
_SETTLING: Final = 10.0
_POLL: Final = 0.05


def consume(scene: Scene, jet: JetStream) -> None:
    """Run both workers until all events are settled and no message is pending on the server.

    Both waits have a time limit. If it is exceeded, step 6 reports the missing messages.
    """
    consumer = jet.get_stream(STREAM).get_consumer(CONSUMER)
    assert scene.consumer_config is not None, "the consumer has not been created"
    ledger = Ledger(scene.stored, max_deliver=scene.consumer_config.max_deliver or 1)
    scene.ledger = ledger
    started = time.monotonic()
    crew = Crew(scene.url, ledger)
    try:
        _show_progress(scene, ledger, crew)
        scene.consume_seconds = time.monotonic() - started
        scene.left_on_server = _left(consumer, crew)
    finally:
        crew.end()
    remark(scene.console, _summary(ledger))


def _show_progress(scene: Scene, ledger: Ledger, crew: Crew) -> None:
    deadline = time.monotonic() + _PATIENCE
    with progress(scene.console) as display:
        task = display.add_task("settle", total=ledger.expected)
        while not ledger.complete.wait(_POLL):
            display.update(task, completed=ledger.settled)
            if crew.stop.is_set() or time.monotonic() > deadline:
                break
        display.update(task, completed=ledger.settled)


def _left(consumer: Consumer, crew: Crew) -> int:
    """Wait until no message is pending on the server, and return the number of pending messages.

    The result is above 0 if the wait takes more than `_SETTLING` seconds, or if a worker failed.
    The workers must continue to pull during the wait: the server settles a message that exceeded
    `max_deliver` only when the message is due for another delivery.
    """
    deadline = time.monotonic() + _SETTLING
    while True:
        state = consumer.info()
        left = (state.num_pending or 0) + (state.num_ack_pending or 0)
        if not left or crew.stop.is_set() or time.monotonic() > deadline:
            return left
        time.sleep(_POLL)


def _summary(ledger: Ledger) -> str:
    shares = " and ".join(f"{count:,} by {name}" for name, count in ledger.deliveries.items())
    return (
        f"{sum(ledger.deliveries.values()):,} deliveries: {shares}."
        f" {len(ledger.acknowledged):,} messages acknowledged, {len(ledger.terminated)} terminated"
        f" (no JSON), {len(ledger.exhausted)} given up after {ledger.max_deliver} deliveries."
    )
